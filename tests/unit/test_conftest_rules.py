"""The rules that tests/conftest.py gives to all other tests, tried out on small suites of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]

NEEDS_ALL = """
import pytest
@pytest.mark.docker
def test_with_docker(): pass
@pytest.mark.bubblewrap
def test_with_bubblewrap(): pass
@pytest.mark.browser
def test_with_browser(): pass
@pytest.mark.node
def test_with_node(): pass
def test_pure(): pass
"""


def run_suite(folder: Path, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `source` as a test file under the real conftest.py, with only `environment` and an empty PATH."""
    (folder / "conftest.py").write_text((TOP / "tests" / "conftest.py").read_text())
    (folder / "test_small.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-c", str(TOP / "pyproject.toml"), "--rootdir", str(folder), str(folder)]
    clean = {name: value for name, value in os.environ.items() if name not in ("CI", "PATH") and "PYTEST" not in name}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**clean, "PATH": str(folder), **environment}
    )


def test_a_missing_part_is_a_skip_with_one_line_on_a_laptop(tmp_path: Path) -> None:
    done = run_suite(tmp_path, NEEDS_ALL)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 4 skipped" in done.stdout
    for line in ("docker: no docker", "bubblewrap: bubblewrap is not", "browser: Chromium", "node: node is not"):
        assert done.stdout.count(line) == 1, done.stdout


def test_a_missing_part_is_a_failure_in_ci(tmp_path: Path) -> None:
    done = run_suite(tmp_path, NEEDS_ALL, CI="true")
    assert done.returncode == 1
    assert "1 passed, 4 errors" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize("value", ["", "0", "false"])
def test_ci_switched_off_counts_as_a_laptop(tmp_path: Path, value: str) -> None:
    assert run_suite(tmp_path, NEEDS_ALL, CI=value).returncode == 0


def test_an_engine_that_is_installed_but_does_not_answer_counts_as_missing(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "docker").chmod(0o755)
    done = run_suite(tmp_path, NEEDS_ALL)
    assert "docker: no Docker engine answers" in done.stdout


def test_a_test_that_reaches_for_a_public_address_is_stopped(tmp_path: Path) -> None:
    # The audit event is raised by hand: a real connect would send a packet on the day the guard is broken.
    source = """
import socket, sys
def test_tcp():
    try: sys.audit("socket.connect", None, ("1.2.3.4", 9))
    except Exception: pass
def test_udp():
    sys.audit("socket.sendto", None, ("2600::1", 9))
def test_loopback():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0)); server.listen()
        socket.create_connection(server.getsockname()).close()
"""
    done = run_suite(tmp_path, source)
    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert done.stdout.count("PublicTraffic: a test tried to reach") >= 2


def test_the_callers_lab_is_not_seen_by_tests(tmp_path: Path) -> None:
    done = run_suite(
        tmp_path, "import os\ndef test_it(): assert 'LABAUDIT_DIR' not in os.environ\n", LABAUDIT_DIR="/somewhere"
    )
    assert done.returncode == 0, done.stdout


def test_acceptance_runs_more_examples_and_ci_repeats_the_same_ones(tmp_path: Path) -> None:
    source = """
from hypothesis import settings
def test_it(): assert (settings.default.max_examples, settings.default.derandomize, settings.default.deadline) == {}
"""
    small = (50, False, None)
    big = (1000, True, None)
    assert run_suite(tmp_path, source.format(small)).returncode == 0
    assert run_suite(tmp_path, source.format(big), CI="1", LABAUDIT_HYPOTHESIS="acceptance").returncode == 0
    assert run_suite(tmp_path, source.format(big)).returncode == 1
