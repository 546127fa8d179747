"""The set-up scripts on machines that lack things: they name the next step, remove what is stale, start the engine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
TOOLS = (
    "bash", "cat", "cut", "dirname", "env", "grep", "id", "mkdir", "mktemp", "rm", "sha256sum", "tail", "tee", "tr",
)  # fmt: skip

TARGETS = ["demo", "test", "test-fast", "acceptance", "lint", "docs", "bench", "lock", "clean"]


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A PATH with the everyday tools and nothing else: no python, uv, apt-get, docker, bwrap, node."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def fake(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
    (folder / name).chmod(0o755)


def call(*command: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "DOCKER_HOST", "CI")}
    return subprocess.run(
        command, cwd=TOP, capture_output=True, text=True, timeout=60, env={**clean, "PATH": str(path), **environment}
    )


def in_setup(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Runs `code` with the functions of scripts/setup defined; without arguments the script itself does nothing."""
    return call("bash", "-c", f"set --; source scripts/setup; {code}", path=path)


def test_an_unknown_part_is_wrong_usage(bare_path: Path) -> None:
    done = call("scripts/setup", "kitchen", path=bare_path)
    assert done.returncode == 2
    assert "unknown part 'kitchen'; known: python sandbox engine browser node acp" in done.stderr


def test_without_python_the_next_step_is_named(bare_path: Path) -> None:
    done = call("scripts/find-python", path=bare_path)
    assert done.returncode == 4
    assert "install one (Debian: apt-get install python3 python3-venv)" in done.stderr


def test_a_python_that_does_not_run_is_passed_over(bare_path: Path) -> None:
    fake(bare_path, "python3.11", "exit 127")
    (bare_path / "python3").symlink_to(sys.executable)
    done = call("scripts/find-python", path=bare_path)
    assert done.returncode == 0
    assert Path(done.stdout.strip()).resolve() == Path(sys.executable).resolve()


def test_an_old_python_is_passed_over(bare_path: Path) -> None:
    fake(bare_path, "python3", "exit 1")
    assert call("scripts/find-python", path=bare_path).returncode == 4


@pytest.mark.parametrize(
    ("part", "packages"),
    [("sandbox", "bubblewrap"), ("engine", "docker.io iptables"), ("browser", "chromium"), ("node", "nodejs npm")],
)
def test_a_missing_part_is_named_with_its_packages_and_does_not_stop_the_rest(
    bare_path: Path, part: str, packages: str
) -> None:
    done = call("scripts/setup", part, path=bare_path)
    assert done.returncode == 0
    assert packages in done.stderr


def test_without_root_the_command_to_type_is_shown_and_nothing_is_installed(bare_path: Path, tmp_path: Path) -> None:
    fake(bare_path, "apt-get", f"touch {tmp_path}/apt-was-called")
    (bare_path / "id").unlink()
    fake(bare_path, "id", "echo 1000")
    done = call("scripts/setup", "sandbox", path=bare_path)
    assert "sudo apt-get install bubblewrap" in done.stderr
    assert not (tmp_path / "apt-was-called").exists()


def test_an_engine_named_by_docker_host_is_never_replaced_by_our_own(bare_path: Path, tmp_path: Path) -> None:
    fake(bare_path, "docker", "exit 1")
    fake(bare_path, "dockerd", f"touch {tmp_path}/dockerd-was-started")
    (bare_path / "timeout").symlink_to(shutil.which("timeout") or "")
    done = call("scripts/setup", "engine", path=bare_path, DOCKER_HOST="tcp://127.0.0.1:1")
    assert "DOCKER_HOST=tcp://127.0.0.1:1 does not answer" in done.stderr
    assert not (tmp_path / "dockerd-was-started").exists()


@pytest.mark.parametrize("content", ["999999999\n", "", "not a number\n", "OWN"])
def test_a_pidfile_whose_process_is_not_the_daemon_is_removed(bare_path: Path, tmp_path: Path, content: str) -> None:
    pidfile = tmp_path / "docker.pid"
    pidfile.write_text(content.replace("OWN", str(os.getpid())))
    done = in_setup(f"remove_stale_pidfile {pidfile} dockerd", bare_path)
    assert done.returncode == 0, done.stderr
    assert not pidfile.exists()


def test_the_pidfile_of_a_living_daemon_stays(bare_path: Path, tmp_path: Path) -> None:
    pidfile = tmp_path / "some.pid"
    pidfile.write_text(f"{os.getpid()}\n")
    own_name = Path(f"/proc/{os.getpid()}/comm").read_text().strip()
    assert in_setup(f"remove_stale_pidfile {pidfile} '{own_name}'", bare_path).returncode == 0
    assert pidfile.exists()


@pytest.mark.parametrize(("outcomes", "code"), [("00", 0), ("10", 1), ("01", 1)])
def test_ci_runs_both_parts_whatever_happens_and_repeats_their_summaries(
    bare_path: Path, outcomes: str, code: int
) -> None:
    script = f"""
case $1 in
  test) echo '3 passed, 1 skipped in 0.10s'; exit {outcomes[0]} ;;
  acceptance) echo '2 failed, 5 passed in 60.00s (0:01:00)'; exit {outcomes[1]} ;;
esac"""
    fake(bare_path, "make", script)
    done = call(".ci/run", path=bare_path)
    assert done.returncode == code
    assert "s): 3 passed, 1 skipped in 0.10s" in done.stdout
    assert "s): 2 failed, 5 passed in 60.00s" in done.stdout


@pytest.mark.parametrize("target", TARGETS)
def test_make_knows_the_target(target: str) -> None:
    done = subprocess.run(["make", "--dry-run", target], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


PRIVATE_ENGINE = """
set -eu
mount -t tmpfs none /run
for folder in /var/lib/docker /var/lib/containerd /var/log; do mkdir -p $folder; mount -t tmpfs none $folder; done
ip link set lo up
echo 1 > /var/run/docker.pid
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("/var/run/docker.sock")'
scripts/setup engine
docker info --format 'engine {{.ServerVersion}}'
scripts/setup engine
"""


@pytest.mark.docker
@pytest.mark.acceptance
@pytest.mark.skipif(os.geteuid() != 0, reason="starting a daemon needs root")
def test_an_engine_is_started_where_only_a_dead_socket_and_a_stale_pidfile_are_left() -> None:
    """In namespaces of its own: the machine's engine, its folders and its network stay out of reach."""
    if shutil.which("dockerd") is None or "DOCKER_HOST" in os.environ:
        pytest.skip("no dockerd of our own to start")
    alone = ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child"]
    command = [*alone, "bash", "-c", PRIVATE_ENGINE]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "setup: removing /var/run/docker.pid: process 1 is not dockerd"
    assert "setup: starting dockerd" in lines[1]
    assert lines[2] == "setup: the Docker engine answers"
    assert lines[3].startswith("engine ")
    assert len(lines) == 4, "the second set-up found the engine and said nothing"
