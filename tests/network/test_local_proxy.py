"""The proxy as a process beside a sandbox: started, leased, pooled, drained, killed; and the forwarder before it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.network.forward import Forwarder
from labaudit.network.lease import ProxyLease
from labaudit.network.local_proxy import NOBODY, LocalProxies, NetworkProxy
from labaudit.network.policy import EgressPolicy
from labaudit.network.program import forward_command, proxy_command, write_config, write_program
from labaudit.records.schema_registry import validate
from tests.engine_contract import until
from tests.network_lab import LOOPBACK, Origin, read_all, rule_of, status_of


@dataclass(frozen=True)
class Asked:
    """A network specification as engines write it."""

    allowed_hosts: tuple[str, ...]
    allowed_networks: tuple[str, ...] = (LOOPBACK, "::1/128")
    pooled: bool = False
    pool_key: str = ""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Shorter than pytest's own, which with several workers can be too long for a unix socket."""
    with tempfile.TemporaryDirectory(prefix="lp-") as folder:
        yield Path(folder)


@pytest.fixture
def proxies() -> Iterator[LocalProxies]:
    made = LocalProxies()
    yield made
    made.close()


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin() as made:
        yield made


def talk(path: Path, words: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(5)
        line.connect(str(path))
        line.sendall(words)
        return read_all(line)


def get(host: str, port: int) -> bytes:
    return f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n".encode()


def rows(lease: ProxyLease) -> list[dict[str, object]]:
    return [json.loads(line) for line in lease.events()]


def pid_of(lease: ProxyLease) -> int:
    assert isinstance(lease.proxy, NetworkProxy)
    return lease.proxy.pid


def test_a_leased_proxy_serves_and_tells_what_it_decided(proxies: LocalProxies, origin: Origin, tmp_path: Path) -> None:
    lease = proxies.lease(Asked((f"localhost:{origin.port}",)), tmp_path)
    assert status_of(talk(lease.socket, get("localhost", origin.port))) == 200
    assert rule_of(talk(lease.socket, get("evil.test", 80))) == "host_not_allowed"
    assert lease.alive()
    events = rows(lease)
    assert [event["decision"] for event in events] == ["allow", "block"]
    assert [event["seq"] for event in events] == [0, 1]
    assert all(validate("network_event_v1", event) == [] for event in events)
    assert lease.complete
    lease.release()
    lease.release()
    assert not lease.alive()


def test_the_process_has_no_rights_and_no_environment(proxies: LocalProxies, tmp_path: Path) -> None:
    lease = proxies.lease(Asked(("localhost:1",)), tmp_path)
    status = Path(f"/proc/{pid_of(lease)}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    if os.geteuid() == 0:
        assert fields["Uid"].split() == [str(NOBODY[0])] * 4
        assert fields["CapEff"].strip("0") == ""
        assert fields["Groups"].strip() == ""
    assert lease.socket.stat().st_mode & 0o077 == 0
    with suppress(PermissionError):
        assert Path(f"/proc/{pid_of(lease)}/environ").read_bytes() == b""


def test_open_connections_are_in_the_events_of_the_trial_that_ended(
    proxies: LocalProxies, tmp_path: Path
) -> None:
    with Origin(waits_for=b"never", hold=5) as origin:
        lease = proxies.lease(Asked((f"localhost:{origin.port}",)), tmp_path)
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(lease.socket))
            line.sendall(get("localhost", origin.port))
            assert until(lambda: origin.received and b"\r\n\r\n" in origin.received[0])
            [event] = rows(lease)
    assert event["decision"] == "allow"
    assert event["bytes_up"] == len(origin.received[0])


def test_a_pooled_proxy_is_used_again_and_keeps_the_trials_apart(
    proxies: LocalProxies, origin: Origin, tmp_path: Path
) -> None:
    asked = Asked((f"localhost:{origin.port}",), pooled=True, pool_key="worker-1")
    first = proxies.lease(asked, tmp_path)
    for _ in range(60):
        talk(first.socket, get("evil.test", 80))
    assert sum(event.get("count", 1) for event in rows(first)) == 60  # type: ignore[misc]
    first.release()
    second = proxies.lease(asked, tmp_path)
    assert pid_of(second) == pid_of(first)
    talk(second.socket, get("evil.test", 80))
    [event] = rows(second)
    assert event["seq"] == 0
    second.release()
    assert rows(proxies.lease(asked, tmp_path)) == []


def test_pooled_proxies_are_never_shared_at_the_same_time_nor_across_policies(
    proxies: LocalProxies, tmp_path: Path
) -> None:
    one = Asked(("localhost:1",), pooled=True, pool_key="worker-1")
    held = proxies.lease(one, tmp_path)
    beside = proxies.lease(one, tmp_path)
    assert pid_of(beside) != pid_of(held)
    held.release()
    other_worker = proxies.lease(Asked(("localhost:1",), pooled=True, pool_key="worker-2"), tmp_path)
    other_policy = proxies.lease(Asked(("localhost:2",), pooled=True, pool_key="worker-1"), tmp_path)
    assert pid_of(held) not in (pid_of(other_worker), pid_of(other_policy))
    assert pid_of(proxies.lease(one, tmp_path)) == pid_of(held)


def test_a_dead_proxy_is_not_given_to_the_next_trial(proxies: LocalProxies, tmp_path: Path) -> None:
    asked = Asked(("localhost:1",), pooled=True)
    lease = proxies.lease(asked, tmp_path)
    os.kill(pid_of(lease), signal.SIGKILL)
    assert lease.events() == ()
    assert not lease.alive()
    lease.release()
    assert pid_of(proxies.lease(asked, tmp_path)) != pid_of(lease)


def test_what_a_proxy_had_written_before_it_was_killed_is_still_evidence(
    proxies: LocalProxies, tmp_path: Path
) -> None:
    lease = proxies.lease(Asked(("localhost:1",)), tmp_path)
    talk(lease.socket, get("evil.test", 80))
    assert until(lease.proxy.log_size)
    os.kill(pid_of(lease), signal.SIGKILL)
    [event] = rows(lease)
    assert event["rule"] == "host_not_allowed"
    assert not lease.complete  # whether that was all, nobody can say


def test_a_proxy_that_hangs_is_not_alive(proxies: LocalProxies, tmp_path: Path) -> None:
    lease = proxies.lease(Asked(("localhost:1",), pooled=True), tmp_path)
    os.kill(pid_of(lease), signal.SIGSTOP)
    while state_of(pid_of(lease)) != "T":
        time.sleep(0.01)
    try:
        assert not lease.alive()
    finally:
        os.kill(pid_of(lease), signal.SIGCONT)
    assert until(lease.alive)


def test_b68_a_killed_proxy_fails_closed_behind_its_forwarder(
    proxies: LocalProxies, origin: Origin, tmp_path: Path
) -> None:
    lease = proxies.lease(Asked((f"localhost:{origin.port}",)), tmp_path)
    forwarder = Forwarder.listen(0, lease.socket)
    try:
        def ask() -> bytes:
            with socket.create_connection(("127.0.0.1", forwarder.port), 5) as line:
                with suppress(OSError):
                    line.sendall(get("localhost", origin.port))
                return read_all(line)

        assert status_of(ask()) == 200
        os.kill(pid_of(lease), signal.SIGKILL)
        assert until(lambda: not lease.alive())
        assert ask() == b""
        assert len(origin.received) == 1
    finally:
        forwarder.close()


def test_a_log_that_cannot_be_written_ends_the_proxy(tmp_path: Path, origin: Origin) -> None:
    config = write_config(tmp_path, tmp_path, EgressPolicy.parse([f"localhost:{origin.port}"], [LOOPBACK, "::1/128"]))
    told = json.loads(config.read_text())
    config.write_text(json.dumps({**told, "log": "/dev/full"}))
    network = Path(sys.modules["labaudit.network"].__file__ or "").parent
    command = proxy_command(sys.executable, network, config)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        talk(tmp_path / "proxy.sock", get("evil.test", 80))
        assert process.wait(30) == 3


def test_the_proxy_ends_when_its_runner_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\n"
        "from labaudit.network.local_proxy import NetworkProxy\nfrom labaudit.network.policy import EgressPolicy\n"
        f"proxy = NetworkProxy.start(EgressPolicy.parse(['localhost:1']), Path({str(tmp_path)!r}))\n"
        "print(proxy.pid, flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        pid = int(runner.stdout.readline())
        runner.kill()
    assert until(lambda: not is_running(pid), 30)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def is_running(pid: int) -> bool:
    try:
        return state_of(pid) not in ("Z", "X")
    except OSError:
        return False


def test_closing_ends_every_proxy_and_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    proxies = LocalProxies()
    leases = [proxies.lease(Asked(("localhost:1",), pooled=True, pool_key=str(n)), tmp_path) for n in range(2)]
    leases[0].release()
    proxies.close()
    assert not any(is_running(pid_of(lease)) for lease in leases)
    leases[1].release()
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_makes_no_sense_starts_nothing(proxies: LocalProxies, tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        proxies.lease(Asked(("*.example.com",)), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_too_long_for_a_socket_is_told(proxies: LocalProxies, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    with pytest.raises(EnvironmentLacks) as caught:
        proxies.lease(Asked(("localhost:1",)), deep)
    assert "LABAUDIT_RUNTIME_DIR" in caught.value.hint


def test_the_programs_run_from_a_copy_as_in_a_container(origin: Origin, tmp_path: Path) -> None:
    program, run = tmp_path / "program", tmp_path / "run"
    run.mkdir()
    write_program(program)
    policy = EgressPolicy.parse([f"localhost:{origin.port}"], [LOOPBACK, "::1/128"])
    config = write_config(run, run, policy, socket_mode=0o666)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env={}, cwd="/")
        for command in (
            proxy_command(sys.executable, program, config),
            forward_command(sys.executable, program, {port: run / "proxy.sock"}),
        )
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        assert (run / "proxy.sock").stat().st_mode & 0o777 == 0o666
        with socket.create_connection(("127.0.0.1", port), 5) as line:
            line.sendall(get("localhost", origin.port))
            assert status_of(read_all(line)) == 200
    finally:
        for process in started:
            process.terminate()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()
    assert not (run / "proxy.sock").exists()
    assert len((run / "network_events.jsonl").read_bytes().splitlines()) == 1


def test_the_forwarder_passes_bytes_both_ways_with_half_close(tmp_path: Path) -> None:
    path = tmp_path / "echo.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    forwarder = Forwarder.listen(0, path)
    try:
        with socket.create_connection(("127.0.0.1", forwarder.port), 5) as line:
            server, _ = listener.accept()
            with server:
                data = os.urandom(1 << 20)
                line.sendall(data[:1000])
                line.shutdown(socket.SHUT_WR)
                assert read_all(server) == data[:1000]
                server.sendall(data[:100_000])
                server.shutdown(socket.SHUT_WR)
                assert read_all(line) == data[:100_000]
    finally:
        forwarder.close()
        listener.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", forwarder.port), 1)


def test_the_forwarder_takes_so_many_connections_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labaudit.network.forward.MAX_CONNECTIONS", 3)
    path = tmp_path / "silent.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(16)
        forwarder = Forwarder.listen(0, path)
        lines = [socket.create_connection(("127.0.0.1", forwarder.port), 20) for _ in range(5)]
        # taken one after another: once the last one is closed, the first three have had their turn
        assert [read_all(line) for line in lines[3:]] == [b"", b""]
        for line in lines[:3]:
            line.setblocking(False)
            with pytest.raises(BlockingIOError):
                line.recv(1)
        forwarder.close()
        for line in lines:
            line.close()


@pytest.mark.parametrize("count", [5, pytest.param(200, marks=pytest.mark.acceptance)])
def test_leases_leave_no_process_no_descriptor_no_thread_and_no_folder(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before, threads, pids = descriptors(), threading.active_count(), set()
    proxies = LocalProxies()
    for number in range(count):
        place = tmp_path / f"t{number}"
        place.mkdir()
        lease = proxies.lease(Asked(("localhost:1",), pooled=number % 5 == 0), place)
        pids.add(pid_of(lease))
        forwarder = Forwarder.listen(0, lease.socket)
        with socket.create_connection(("127.0.0.1", forwarder.port), 5) as line:
            line.sendall(get("evil.test", 80))
            assert status_of(read_all(line)) == 403
        assert len(lease.events()) == 1
        forwarder.close()
        lease.release()
        shutil.rmtree(place)
    proxies.close()
    until(lambda: threading.active_count() <= threads)
    assert not any(is_running(pid) for pid in pids)
    assert len(pids) == count - (count - 1) // 5
    assert threading.active_count() <= threads
    assert descriptors() <= before
    assert list(tmp_path.iterdir()) == []


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
