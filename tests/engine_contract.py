"""What every engine must do, as tests that each engine's own test file inherits.

A subclass gives the fixture `engine`. Everything here is about the life of a sandbox; what only a confining engine can
promise stands in `tests/confinement_contract.py`.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from labaudit.engines.protocol import (
    Engine,
    Limits,
    LoopbackService,
    ReadOnlyMount,
    Sandbox,
    SandboxLabels,
    SandboxResult,
    SandboxSpec,
)
from labaudit.errors import BadInput, LabauditError

LABELS = SandboxLabels("run-test", "trial-test")


def spec_for(engine: Engine, *command: str, **options: object) -> SandboxSpec:
    """A spec for the bundled image with small limits and short grace."""
    image = engine.resolve_image(None)
    base = SandboxSpec(image.id, command, LABELS, timeout_s=30.0, grace_s=1.0, limits=Limits(memory_mb=256))
    return replace(base, **options)  # type: ignore[arg-type]


@contextmanager
def opened(engine: Engine, *command: str, **options: object) -> Iterator[Sandbox]:
    """A sandbox that is removed at the end, whatever happens."""
    sandbox = engine.open(spec_for(engine, *command, **options))
    try:
        yield sandbox
    finally:
        sandbox.remove()


def run(engine: Engine, *command: str, **options: object) -> SandboxResult:
    """Start to end of one command."""
    with opened(engine, *command, **options) as sandbox:
        sandbox.start()
        return sandbox.wait()


def python(engine: Engine, source: str, **options: object) -> SandboxResult:
    """One Python program in a sandbox."""
    return run(engine, "python3", "-c", source, **options)


def until(condition: object, seconds: float = 10.0) -> bool:
    """Waits for a condition to become true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


@contextmanager
def echo_service(folder: Path) -> Iterator[Path]:
    """A unix socket that answers one line with the same line, upper case."""
    path = folder / "service.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.sendall(peer.recv(100).upper())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield path
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


class EngineContract:
    """Inherited by one class per engine."""

    def test_output_exit_code_and_times_come_back(self, engine: Engine) -> None:
        result = run(engine, "sh", "-c", "echo to-out; echo to-err >&2; exit 7")
        assert (result.exit_code, result.signal, result.cause, result.timed_out) == (7, None, "exited", False)
        assert result.stdout.rendered() == b"to-out\n"
        assert result.stderr.rendered() == b"to-err\n"
        assert result.ended_at >= result.started_at
        assert result.oom.verdict == "none"

    def test_a_signal_that_ends_the_command_is_named(self, engine: Engine) -> None:
        result = python(engine, "import os, signal; signal.raise_signal(signal.SIGSEGV)", grace_s=0.5)
        assert result.signal == 11
        assert result.exit_code == 139

    def test_input_is_read_and_output_collected(self, engine: Engine, tmp_path: Path) -> None:
        source = (
            "import os, pathlib; given = pathlib.Path(os.environ['GIVEN']).read_text();"
            "sub = pathlib.Path(os.environ['OUT'], 'sub'); sub.mkdir(); (sub / 'answer').write_text(given * 2)"
        )
        env = {"GIVEN": "/in/question", "OUT": "/out"}
        with opened(engine, "python3", "-c", source, env=env) as sandbox:
            Path(sandbox.host.input, "question").write_text("abc")
            sandbox.start()
            assert sandbox.wait().exit_code == 0
            collection = sandbox.collect_outputs(tmp_path / "taken")
        assert (tmp_path / "taken" / "sub" / "answer").read_text() == "abcabc"
        assert [(file.path, file.size, file.sha256) for file in collection.files] == [
            ("sub/answer", 6, hashlib.sha256(b"abcabc").hexdigest())
        ]
        assert collection.refused == ()

    def test_state_and_workspace_are_shared_with_the_runner_while_it_runs(self, engine: Engine) -> None:
        source = (
            "import os, pathlib, time; state = pathlib.Path(os.environ['STATE'])\n"
            "while not (state / 'go').exists(): time.sleep(0.02)\n"
            "(state / 'went').write_text('yes'); pathlib.Path('here').write_text(os.getcwd())"
        )
        with opened(engine, "python3", "-c", source, env={"STATE": "/state"}) as sandbox:
            Path(sandbox.host.state, "control").write_text("{}")
            sandbox.start()
            assert sandbox.running()
            Path(sandbox.host.state, "go").write_text("")
            assert sandbox.wait().exit_code == 0
            assert Path(sandbox.host.state, "went").read_text() == "yes"
            assert Path(sandbox.host.workspace, "here").read_text() == sandbox.inside.workspace

    def test_harness_and_dataset_are_there_as_they_were_at_the_start(self, engine: Engine, tmp_path: Path) -> None:
        harness, dataset = tmp_path / "harness", tmp_path / "tasks.jsonl"
        harness.mkdir(mode=0o700)
        (harness / "agent.py").write_text("import os, pathlib; print(pathlib.Path(os.environ['DATA']).read_text())")
        dataset.write_text("tasks")
        dataset.chmod(0o600)
        options = {"harness": harness, "dataset": dataset, "env": {"DATA": "/dataset/tasks.jsonl"}}
        result = run(engine, "python3", "/harness/agent.py", **options)
        assert result.stdout.head == b"tasks\n"

    def test_a_read_only_mount_takes_the_place_of_a_surface(self, engine: Engine, tmp_path: Path) -> None:
        (tmp_path / "answer").write_text("42")
        mounts = (ReadOnlyMount(tmp_path, "/out", "out"),)
        with opened(engine, "cat", "/out/answer", read_only=mounts) as sandbox:
            sandbox.start()
            assert sandbox.wait().stdout.head == b"42"

    def test_a_timeout_asks_first(self, engine: Engine) -> None:
        source = (
            "import signal, sys, time\n"
            "signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), sys.exit(3)))\n"
            "print('up', flush=True); time.sleep(60)"
        )
        result = python(engine, source, timeout_s=2.5, grace_s=10.0)
        assert (result.cause, result.timed_out, result.exit_code) == ("timeout", True, 3)
        assert result.stdout.head == b"up\nasked\n"

    def test_a_command_that_ignores_sigterm_is_killed_after_the_grace(self, engine: Engine) -> None:
        source = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
        began = time.monotonic()
        result = python(engine, source, timeout_s=2.0, grace_s=0.5)
        assert (result.cause, result.exit_code, result.signal) == ("timeout", 137, 9)
        assert 2.4 <= (result.ended_at - result.started_at).total_seconds() <= 12
        assert time.monotonic() - began < 20

    def test_stop_and_kill_come_from_any_thread_and_say_why(self, engine: Engine) -> None:
        for verb, cause in (("stop", "stopped"), ("kill", "killed")):
            with opened(engine, "sleep", "60") as sandbox:
                sandbox.start()
                timer = threading.Timer(0.2, lambda box=sandbox, name=verb: getattr(box, name)("budget spent"))
                timer.start()
                result = sandbox.wait()
                timer.join()
            assert (result.cause, result.stop_reason, result.timed_out) == (cause, "budget spent", False)

    def test_a_flood_is_counted_and_hashed_whole_and_kept_in_part(self, engine: Engine) -> None:
        limits = Limits(memory_mb=256, log_head_bytes=1000, log_tail_bytes=1000)
        source = "import sys\nfor _ in range(64): sys.stdout.write('x' * 131072)\nsys.stdout.write('the end')"
        result = python(engine, source, limits=limits)
        whole = b"x" * (8 << 20) + b"the end"
        assert result.stdout.total == len(whole)
        assert result.stdout.sha256 == hashlib.sha256(whole).hexdigest()
        assert (len(result.stdout.head), len(result.stdout.tail)) == (1000, 1000)
        assert result.stdout.rendered().endswith(b"the end")
        assert b"bytes left out here" in result.stdout.rendered()

    def test_pausing_stops_the_clock_of_the_harness(self, engine: Engine) -> None:
        source = (
            "import os, pathlib, time; out = pathlib.Path(os.environ['OUT'], 'ticks')\n"
            "for tick in range(1000): out.write_text(str(tick)); time.sleep(0.01)"
        )
        with opened(engine, "python3", "-c", source, env={"OUT": "/out"}) as sandbox:
            sandbox.start()
            ticks = Path(sandbox.host.out, "ticks")
            assert until(lambda: ticks.exists() and ticks.read_text() not in ("", "0"))
            sandbox.pause()
            before = ticks.read_text()
            time.sleep(0.3)
            assert ticks.read_text() == before
            sandbox.unpause()
            assert until(lambda: ticks.read_text() not in ("", before))
            sandbox.pause()
            sandbox.kill("enough")
            assert sandbox.wait().cause == "killed"

    def test_attached_streams_talk_both_ways(self, engine: Engine) -> None:
        source = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"
        with opened(engine, "python3", "-c", source, attach=True) as sandbox:
            sandbox.start()
            for word in (b"one\n", b"two\n"):
                sandbox.streams.stdin.write(word)
                sandbox.streams.stdin.flush()
                assert sandbox.streams.stdout.readline() == word.upper()
            sandbox.streams.stdin.close()
            result = sandbox.wait()
            assert sandbox.streams.stdout.read() == b""
        assert (result.exit_code, result.stdout.head) == (0, b"ONE\nTWO\n")

    def test_one_more_command_runs_beside_the_harness(self, engine: Engine) -> None:
        with opened(engine, "sleep", "60") as sandbox:
            sandbox.start()
            done = sandbox.execute(("sh", "-c", "echo beside; echo err >&2; exit 5"))
            sandbox.kill("enough")
        assert (done.exit_code, done.stdout, done.stderr) == (5, b"beside\n", b"err\n")

    def test_a_loopback_service_is_reached_through_its_port(self, engine: Engine, tmp_path: Path) -> None:
        source = (
            "import socket; s = socket.create_connection(('127.0.0.1', 14318), 5); s.sendall(b'hello'); "
            "print(s.recv(100).decode())"
        )
        with echo_service(tmp_path) as path:
            result = python(engine, source, services=(LoopbackService("echo", 14318, path),))
        assert result.stdout.head == b"HELLO\n", result.stderr.head

    def test_a_command_that_is_not_there_is_bad_input(self, engine: Engine) -> None:
        with opened(engine, "/no/such/program") as sandbox, pytest.raises(BadInput, match="/no/such/program"):
            sandbox.start()

    def test_starting_twice_or_waiting_too_early_is_refused(self, engine: Engine) -> None:
        with opened(engine, "true") as sandbox:
            with pytest.raises(LabauditError):
                sandbox.wait()
            sandbox.start()
            with pytest.raises(LabauditError):
                sandbox.start()
            assert sandbox.wait().exit_code == 0
            assert sandbox.wait().exit_code == 0

    def test_removal_ends_what_runs_and_leaves_no_folder(self, engine: Engine) -> None:
        sandbox = engine.open(spec_for(engine, "sleep", "60"))
        sandbox.start()
        folder = Path(sandbox.host.out).parent
        assert folder.is_dir()
        sandbox.remove()
        sandbox.remove()
        assert not folder.exists()
        assert not sandbox.running()

    def test_odd_things_in_out_are_refused_and_recorded(self, engine: Engine, tmp_path: Path) -> None:
        source = (
            "import os, socket; os.chdir(os.environ['OUT'])\n"
            "open('good', 'w').write('good'); os.symlink('/etc/passwd', 'link'); os.mkfifo('fifo')\n"
            "s = socket.socket(socket.AF_UNIX); s.bind('sock')\n"
            "f = open('sparse', 'w'); f.truncate(1 << 20); f.close()\n"
            "open('hard', 'w').write('x'); os.link('hard', 'hard2')\n"
            "open('suid', 'w').write('x'); os.chmod('suid', 0o4755)\n"
            "open(b'bad\\xff', 'w').write('x'); open('new\\nline', 'w').write('x')\n"
            "os.makedirs('d/' * 20); open('d/' * 20 + 'deep', 'w').write('x')\n"
            "os.mkdir('shut'); open('shut/in', 'w').write('x'); os.chmod('shut', 0)"
        )
        with opened(engine, "python3", "-c", source, env={"OUT": "/out"}) as sandbox:
            sandbox.start()
            result = sandbox.wait()
            assert result.exit_code == 0, result.stderr.head
            collection = sandbox.collect_outputs(tmp_path / "taken")
        taken = {file.path for file in collection.files}
        assert "good" in taken
        assert taken <= {"good", "shut/in"}  # root may read a folder that its owner has shut
        kinds = {entry.path: entry.kind for entry in collection.refused}
        assert kinds["link"] == "symlink"
        assert kinds["fifo"] == "fifo"
        assert kinds["sock"] == "socket"
        assert kinds["sparse"] == "sparse"
        assert kinds["hard"] == kinds["hard2"] == "hardlink"
        assert kinds["suid"] == "setuid"
        assert sorted(entry.kind for entry in collection.refused if entry.path.startswith(("bad", "new"))) == [
            "bad_name", "bad_name",
        ]  # fmt: skip
        assert "too_deep" in kinds.values()
        assert all(not os.path.islink(path) for path in (tmp_path / "taken").rglob("*"))
