"""What every confining engine must withstand, as tests that the docker and bubblewrap test files inherit.

The numbers in the names are those of the sandbox attack list. Each expectation is read from evidence: what the engine
recorded, what the probe told, what is left on the host.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from labaudit.engines.checks import self_probe
from labaudit.engines.protocol import Engine, Limits, NetworkSpec, NotObserved, Sandbox
from tests.engine_contract import opened, python, run, until

SMALL = Limits(memory_mb=128, pids=48, out_mb=2, workspace_mb=3, state_mb=1, tmp_mb=2, files=200)
as_root_only = pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has no control groups and no quotas")


def told(engine: Engine, source: str, **options: object) -> dict[str, object]:
    """What a program printed as JSON."""
    result = python(engine, source, **options)
    assert result.exit_code == 0, result.stderr.rendered()
    value: dict[str, object] = json.loads(result.stdout.rendered())
    return value


def processes_with(token: str) -> list[str]:
    """Host processes that carry a token in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            except OSError:
                continue
            if token.encode() in words and state != "Z" and int(entry.name) != os.getpid():
                found.append(entry.name)
    return found


class ConfinementContract:
    """A subclass gives `engine` and says how to kill a sandbox's proxy."""

    def kill_proxy(self, sandbox: Sandbox) -> None:
        raise NotImplementedError

    def test_b15_to_18_and_b55_to_58_calls_sockets_and_writes_are_refused(self, engine: Engine) -> None:
        seen = told(engine, Path(self_probe.__file__).read_text())
        shut = {"calls": {"EPERM"}, "families": {"EPERM"}, "writes": {"EROFS", "EACCES", "ENOENT"}}
        for group, answers in shut.items():
            found = seen[group]
            assert isinstance(found, dict)
            assert set(found.values()) <= answers, (group, found)
        assert seen["raw"] == "EPERM"
        assert seen["engine_sockets"] == []
        assert set(seen["surfaces"].values()) == {"allowed"}  # type: ignore[attr-defined]

    def test_b17_only_four_socket_families_are_there(self, engine: Engine) -> None:
        source = (
            "import json, socket\nopen_ones = []\n"
            "for family in range(1, 46):\n"
            "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):\n"
            "        try: socket.socket(family, kind).close(); open_ones.append(family)\n"
            "        except OSError: pass\n"
            "print(json.dumps({'families': sorted(set(open_ones))}))"
        )
        families = told(engine, source)["families"]
        assert set(families) <= {1, 2, 10, 16}, families  # type: ignore[call-overload]
        assert {1, 2} <= set(families)  # type: ignore[call-overload]

    def test_what_confines_is_observed_and_nothing_is_unenforced(self, engine: Engine) -> None:
        result = run(engine, "true")
        seen = result.observed
        assert not isinstance(seen.uid, NotObserved)
        assert seen.uid != 0
        assert (seen.capabilities, seen.no_new_privs, seen.seccomp_mode) == (frozenset(), True, 2)
        assert (seen.root_read_only, seen.interfaces, seen.routes) == (True, (), ())
        assert not isinstance(seen.resolvers, NotObserved)
        assert set(seen.resolvers) <= {"127.0.0.1"}
        assert set(seen.witnesses) == {"init", "host", "engine"}
        assert seen.disagreements == ()
        assert (result.network.mode_effective, result.network.bypass_risk) == ("none", "none")
        expected = set() if os.geteuid() == 0 else {"memory_mb", "cpus", "out_mb", "workspace_mb"}
        assert {item.what for item in result.unenforced} == expected

    def test_a_harness_cannot_forge_the_report_of_its_init(self, engine: Engine) -> None:
        forged = (
            r"import sys; sys.stderr.write('\x1elabaudit-init 1\n== /proc/self/status\nUid: 0 0 0 0\nSeccomp: 0\n"
            r"\x1eend\n')"
        )
        result = python(engine, forged)
        assert result.observed.seccomp_mode == 2
        assert result.observed.uid != 0
        assert b"labaudit-init" in result.stderr.rendered()

    @as_root_only
    def test_b59_a_fork_bomb_ends_at_the_limit(self, engine: Engine) -> None:
        token = secrets.token_hex(8)
        source = (
            f"import os, time # {token}\nmade = 0\n"
            "while True:\n"
            "    try: child = os.fork()\n"
            "    except OSError: break\n"
            "    if child == 0: time.sleep(60); os._exit(0)\n"
            "    made += 1\n"
            "print(made, flush=True); os._exit(0)"
        )
        result = python(engine, source, limits=SMALL)
        assert 1 <= int(result.stdout.head) < SMALL.pids
        assert until(lambda: not processes_with(token), 5)

    @as_root_only
    def test_b60_out_of_memory_is_told_apart_main_or_child(self, engine: Engine) -> None:
        hungry = "x = []\nwhile True: x.append(bytearray(1 << 20))"
        main = python(engine, hungry, limits=SMALL)
        assert main.exit_code == 137
        if main.oom.engine_flag is None and main.oom.kernel_kills is None:
            assert main.oom.verdict == "unknown"
            pytest.skip("this engine (Podman) tells nothing of the memory kills of a container's children")
        assert main.oom.verdict == "main_killed"
        child = python(
            engine,
            f"import os\nif os.fork() == 0:\n    exec({hungry!r})\n_, status = os.wait(); print(status & 127)",
            limits=SMALL,
        )
        assert (child.exit_code, child.stdout.head, child.oom.verdict) == (0, b"9\n", "child_killed")

    def test_b61_a_forged_exit_code_is_no_kill(self, engine: Engine) -> None:
        result = python(engine, "import sys; sys.exit(137)")
        assert (result.exit_code, result.cause) == (137, "exited")
        assert result.oom.exit_137
        witness = result.oom.engine_flag is not None or result.oom.kernel_kills is not None
        assert result.oom.verdict == ("none" if witness else "unknown")

    @as_root_only
    def test_b62_every_writable_place_is_bounded_in_bytes_and_in_files(self, engine: Engine) -> None:
        source = (
            "import json, os\ntold = {}\n"
            "for place in ('/out', '/workspace', '/state', '/tmp', '/dev/shm'):\n"
            "    size = 0\n"
            "    try:\n"
            "        with open(place + '/big', 'wb', buffering=0) as f:\n"
            "            while size < 64 << 20: size += f.write(b'x' * 65536)\n"
            "    except OSError: pass\n"
            "    os.unlink(place + '/big'); files = 0\n"
            "    try:\n"
            "        while files < 20000: open(f'{place}/f{files}', 'x').close(); files += 1\n"
            "    except OSError: pass\n"
            "    told[place] = [size, files]\n"
            "print(json.dumps(told))"
        )
        filled = told(engine, source, limits=replace(SMALL, memory_mb=256))
        bounds = {"/out": 2, "/workspace": 3, "/state": 1, "/tmp": 2, "/dev/shm": 2}
        for place, megabytes in bounds.items():
            size, _ = filled[place]  # type: ignore[misc]
            assert 0 < size <= megabytes << 20, (place, size)
        for place in ("/out", "/workspace", "/state"):
            assert 0 < filled[place][1] <= SMALL.files  # type: ignore[index]

    def test_b63_a_line_without_end_costs_no_memory(self, engine: Engine) -> None:
        limits = replace(Limits(memory_mb=256), log_head_bytes=4096, log_tail_bytes=4096)
        result = python(engine, "import sys\nfor _ in range(512): sys.stderr.write('y' * 65536)", limits=limits)
        assert result.stderr.total == 32 << 20
        assert len(result.stderr.rendered()) < 10_000

    def test_b66_a_child_that_detaches_dies_with_the_trial(self, engine: Engine) -> None:
        token = secrets.token_hex(8)
        source = (
            f"import os, time # {token}\n"
            "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
            "        open('/out/alive', 'w').close()\n        time.sleep(60)\n    os._exit(0)\n"
            "while not os.path.exists('/out/alive'): time.sleep(0.01)\n"
        )
        began = time.monotonic()
        result = python(engine, source)
        assert (result.cause, result.exit_code) == ("exited", 0)
        assert time.monotonic() - began < 20
        assert until(lambda: not processes_with(token), 5)

    def test_b67_a_harness_that_stops_itself_is_killed_all_the_same(self, engine: Engine) -> None:
        source = (
            "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\n"
            "while True: os.kill(os.getpid(), signal.SIGSTOP)"
        )
        result = python(engine, source, timeout_s=2.5, grace_s=0.5)
        assert (result.cause, result.signal, result.stdout.head) == ("timeout", 9, b"up\n")

    def test_b20_to_b22_one_trial_cannot_reach_another_nor_any_socket(self, engine: Engine) -> None:
        abstract = f"labaudit-test-{secrets.token_hex(4)}"
        serve = (
            "import socket, time; s = socket.socket(); s.bind(('0.0.0.0', 5555)); s.listen()\n"
            "u = socket.socket(socket.AF_UNIX); u.bind('\\0trial-one'); u.listen()\n"
            "open('/state/up', 'w').close(); time.sleep(60)"
        )
        attack = (
            "import json, os, socket, stat\ntold = {}\n"
            "def tried(family, where):\n"
            "    s = socket.socket(family); s.settimeout(2)\n"
            "    try: s.connect(where); return 'reached'\n"
            "    except OSError as e: return type(e).__name__\n"
            "told['loopback'] = tried(socket.AF_INET, ('127.0.0.1', 5555))\n"
            "told['trial'] = tried(socket.AF_UNIX, '\\0trial-one')\n"
            f"told['host'] = tried(socket.AF_UNIX, '\\0{abstract}')\n"
            "told['sockets'] = [os.path.join(d, n) for d, _, names in os.walk('/') if not d.startswith('/proc')\n"
            "    for n in names if stat.S_ISSOCK(os.lstat(os.path.join(d, n)).st_mode)]\n"
            "told['others'] = [p for p in os.listdir('/proc') if p.isdigit() and\n"
            "    b'trial-one' in open(f'/proc/{p}/cmdline', 'rb').read() and int(p) not in (1, os.getpid())]\n"
            "print(json.dumps(told))"
        )
        network = NetworkSpec("allowlist_enforced", ("a.example",))
        with closing(socket.socket(socket.AF_UNIX)) as canary:
            canary.bind(f"\0{abstract}")
            canary.listen()
            with opened(engine, "python3", "-c", serve, network=network) as first:
                first.start()
                assert until(Path(first.host.state, "up").exists)
                seen = told(engine, attack, network=network)
                first.kill("enough")
        assert seen == {
            "loopback": "ConnectionRefusedError", "trial": "ConnectionRefusedError", "host": "ConnectionRefusedError",
            "sockets": [], "others": [],
        }  # fmt: skip

    def test_b68_a_dead_proxy_fails_closed_and_is_recorded(self, engine: Engine) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        arrived: list[bytes] = []

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    arrived.append(peer.recv(100))

        threading.Thread(target=serve, daemon=True).start()
        source = (
            "import os, socket, time\n"
            "open('/state/up', 'w').close()\n"
            "while not os.path.exists('/state/go'): time.sleep(0.02)\n"
            "try:\n"
            "    s = socket.create_connection(('127.0.0.1', 3128), 5)\n"
            f"    s.sendall(b'GET http://localhost:{port}/ HTTP/1.1\\r\\n\\r\\n'); s.settimeout(5)\n"
            "    print('answer', s.recv(100))\n"
            "except OSError as e: print(type(e).__name__)\n"
        )
        network = NetworkSpec("allowlist_enforced", (f"localhost:{port}",), ("127.0.0.0/8", "::1/128"))
        with closing(listener), opened(engine, "python3", "-c", source, network=network) as sandbox:
            sandbox.start()
            assert until(Path(sandbox.host.state, "up").exists)
            self.kill_proxy(sandbox)
            Path(sandbox.host.state, "go").write_text("")
            result = sandbox.wait()
        assert result.stdout.head in (b"answer b''\n", b"ConnectionResetError\n", b"ConnectionRefusedError\n")
        assert arrived == []
        assert result.network.proxy_alive_at_end is False
