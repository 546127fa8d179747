"""`labaudit doctor` where engines are absent: every line with its fix, and exit 4 where nothing can run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def doctor(folder: Path, *options: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    given = {"PATH": "/nonexistent", "DOCKER_HOST": f"unix://{folder}/no.sock", "LABAUDIT_RUNTIME_DIR": f"{folder}/rt"}
    given |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    command = [sys.executable, "-m", "labaudit", "doctor", "--lab-dir", f"{folder}/.lab", *options]
    return subprocess.run(command, env=given | env, capture_output=True, cwd=Path(__file__).parents[3], check=False)


def test_without_any_engine_it_ends_with_4_and_says_what_to_install(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--json")
    assert done.returncode == 4, done.stderr
    told = json.loads(done.stdout)
    assert told["usable_engines"] == []
    engines = {row["name"]: row for row in told["checks"] if row["area"] == "engine"}
    assert engines["docker"]["status"] == engines["bubblewrap"]["status"] == "missing"
    assert "dockerd" in engines["docker"]["fix"]
    assert "bubblewrap" in engines["bubblewrap"]["fix"]
    assert {"kernel", "engine", "schemas", "keys", "clock"} <= {row["area"] for row in told["checks"]}


def test_lines_for_people_carry_a_mark_and_the_fix(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--engine", "docker", NO_COLOR="1")
    lines = done.stdout.decode().splitlines()
    position = next(i for i, line in enumerate(lines) if line.startswith("missing   engine: docker"))
    assert "start dockerd" in lines[position + 1]
    assert b"\x1b" not in done.stdout


def test_an_engine_elsewhere_is_refused(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--engine", "docker", DOCKER_HOST="tcp://127.0.0.1:1")
    assert done.returncode == 4
    assert b"must run on this machine" in done.stdout


def test_the_process_engine_is_usable_and_degraded(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--engine", "process", "--json")
    assert done.returncode == 0
    rows = [row for row in json.loads(done.stdout)["checks"] if row["area"] == "engine"]
    assert [(row["name"], row["status"]) for row in rows] == [("process", "degraded")]


def test_a_private_key_that_others_can_read_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "labaudit", "keys", "new", "--lab-dir", f"{tmp_path}/.lab"]
    subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[3])
    key = tmp_path / ".lab" / "keys" / "labaudit.key"
    key.chmod(0o644)
    done = doctor(tmp_path, "--engine", "process", "--json")
    row = next(row for row in json.loads(done.stdout)["checks"] if row["area"] == "keys" and row["fix"])
    assert (row["status"], f"chmod 600 {key}") == ("degraded", row["fix"])


@pytest.mark.parametrize("engine", ["podman", ""])
def test_an_unknown_engine_is_a_usage_error(tmp_path: Path, engine: str) -> None:
    assert doctor(tmp_path, "--engine", engine).returncode == 2
