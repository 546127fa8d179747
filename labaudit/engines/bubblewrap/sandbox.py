"""One bubblewrap sandbox: launched by `launcher.py`, watched from outside, entered by `enter.py`."""

from __future__ import annotations

import dataclasses
import json
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labaudit.engines.bubblewrap import enter, launcher
from labaudit.engines.bubblewrap.command import Descriptors, Places, bubblewrap_command, environment
from labaudit.engines.bubblewrap.processes import main_process, signal_all
from labaudit.engines.host.cgroups import ControlGroup
from labaudit.engines.host.surfaces import Surfaces
from labaudit.engines.observation.host_view import host_report, namespaces_of
from labaudit.engines.observation.in_force import not_in_force
from labaudit.engines.observation.init_script import init_command
from labaudit.engines.observation.merge import merge
from labaudit.engines.observation.network_facts import network_evidence
from labaudit.engines.observation.read_report import command_was_missing, read_report
from labaudit.engines.observed import NotObserved, Observed, ObservedLimits
from labaudit.engines.protocol import ExecResult
from labaudit.engines.result import OomEvidence, SandboxResult, Unenforced
from labaudit.engines.running.life import missing_command
from labaudit.engines.running.local_sandbox import Ending, LocalSandbox
from labaudit.engines.running.ports import forwarded_ports
from labaudit.engines.seccomp.bpf import bpf_program
from labaudit.engines.spec import SandboxSpec, SurfacePaths, paths_inside
from labaudit.errors import EnvironmentLacks, LabauditError
from labaudit.network.enforcer import NetworkEnforcer
from labaudit.network.forward import Forwarder
from labaudit.network.lease import ProxyLease

_PYTHON = (sys.executable, "-I", "-S", "-B")
_INFO_WITHIN = 10.0
_ENFORCER = NetworkEnforcer("bubblewrap_netns")


@dataclass(frozen=True)
class Surroundings:
    """What the engine gives to each of its sandboxes."""

    places: Places
    image_env: dict[str, str]
    user: tuple[int, int] | None
    """The user to become, where the runner is root; None where the sandbox runs as the runner's own user."""
    group: ControlGroup | None
    why_no_group: str
    lease: ProxyLease | None
    spawner: Executor
    """Its thread outlives every sandbox: the kernel's death signal is tied to the thread that forked."""
    facts: dict[str, object]


class BubblewrapSandbox(LocalSandbox):
    """A trial in namespaces of its own."""

    def __init__(self, spec: SandboxSpec, surfaces: Surfaces, host: SurfacePaths, around: Surroundings) -> None:
        super().__init__(spec, surfaces, host, paths_inside(spec))
        self._around = around
        self._init: int | None = None
        self._init_fd: int | None = None
        self._namespaces: dict[str, str] = {}
        self._host_view: Observed | None = None
        self._forwarders: list[Forwarder] = []
        self._oom_kills: int | None = None
        self._stopped = False
        """Whether its processes stand still by signals, and not by the freezer."""

    @property
    def lease(self) -> ProxyLease | None:
        """The trial's hold on its proxy, if it has one."""
        return self._around.lease

    # --- launch ---

    def _launch(self, stdin: int, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        lease = self._around.lease
        asked = _ENFORCER.apply(self.spec.network.mode, lease.policy if lease else None, lease)
        ports = {**forwarded_ports(self.spec), **asked.forwards}
        info_read, info_write = os.pipe()
        seccomp, arguments = _memory_file(bpf_program()), -1
        parent, child = socket.socketpair()
        try:
            words = bubblewrap_command(
                self.spec, self._around.places, Descriptors(info_write, seccomp), self._around.image_env,
                own_network=bool(ports), share_network=asked.shares_network,
            )  # fmt: skip
            # environment values may be secrets: on a descriptor other users of the host cannot see them
            arguments = _memory_file(b"".join(word.encode() + b"\0" for word in words))
            argv = init_command(self.spec.command, processes=self.spec.limits.pids)
            plan = {
                "join": self._around.group.joins if self._around.group else [],
                "rlimits": self._rlimits(),
                "user": self._around.user,
                "parent": os.getpid(),
                "ports": sorted(ports),
                "channel": child.fileno(),
                "command": [self._around.places.program, "--args", str(arguments), "--", *argv],
            }
            process = self._around.spawner.submit(
                subprocess.Popen,
                [*_PYTHON, launcher.__file__, marshal.dumps(plan).hex()],
                stdin=stdin, stdout=stdout, stderr=stderr, env={}, start_new_session=True, cwd="/",
                pass_fds=(info_write, seccomp, arguments, child.fileno()),
            ).result()  # fmt: skip
        finally:
            child.close()
            for descriptor in (info_write, seccomp, arguments):
                if descriptor >= 0:
                    os.close(descriptor)
        with parent:
            self._serve(parent, ports)
        self._info(info_read)
        return process

    def _rlimits(self) -> dict[str, int]:
        limits = self.spec.limits
        bounds = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": max(limits.out_mb, limits.workspace_mb, limits.state_mb) << 20}
        if self._around.group is None or "memory_mb" in self._around.group.problems:
            bounds["RLIMIT_DATA"] = limits.memory_mb << 20  # per process only, which is recorded
        return bounds

    def _serve(self, channel: socket.socket, ports: dict[int, Path]) -> None:
        """Receives the listening sockets that the launcher bound inside and forwards each to its unix socket."""
        if not ports:
            return
        channel.settimeout(_INFO_WITHIN)
        descriptors: list[int] = []
        with suppress(OSError):
            _, descriptors, _, _ = socket.recv_fds(channel, 16, len(ports))
        # where the launcher failed there are none; what it said is on stderr and ends in the error of the start
        for descriptor, port in zip(descriptors, sorted(ports), strict=False):
            self._forwarders.append(Forwarder(socket.socket(fileno=descriptor), ports[port]))

    def _info(self, descriptor: int) -> None:
        """Bubblewrap's own account: the pid of the sandbox's init and its namespaces."""
        data, deadline = b"", time.monotonic() + _INFO_WITHIN
        with os.fdopen(descriptor, "rb", buffering=0) as pipe:
            while time.monotonic() < deadline and not data.rstrip().endswith(b"}"):
                if select.select([pipe], [], [], 0.2)[0]:
                    chunk = pipe.read(4096)
                    if not chunk:
                        break
                    data += chunk
        with suppress(ValueError, KeyError, OSError):
            facts = json.loads(data)
            self._init = int(facts["child-pid"])
            self._init_fd = os.pidfd_open(self._init)
            self._namespaces = {key.removesuffix("-namespace"): str(facts[key]) for key in facts if "-namespace" in key}

    def _look_from_outside(self) -> None:
        if self._init is not None and (pid := main_process(self._init)) is not None:
            report = host_report(pid)
            if report is not None:
                self._host_view = dataclasses.replace(read_report(report), witnesses=("host",))
                self._namespaces = {**namespaces_of(pid), **self._namespaces}

    def _check_started(self) -> None:
        if command_was_missing(self._err.report):
            self._ended.wait(5)
            raise missing_command(self.spec.command, "bubblewrap engine")
        if self._err.report is None and not self.running() and self._captured is not None:
            words = self._captured[1].head.decode(errors="replace").strip()[-500:]
            raise EnvironmentLacks(
                f"bubblewrap could not start the sandbox: {words or 'it said nothing'}",
                hint="run `labaudit doctor`: the kernel may forbid user namespaces",
            )

    # --- signals ---

    def _signal(self, number: int) -> None:
        pid = main_process(self._init) if self._init is not None else None
        if pid is not None:
            os.kill(pid, number)
        elif self._process is not None and self._init is None:
            self._process.send_signal(number)

    def _kill_all(self) -> None:
        if self._init_fd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init_fd, signal.SIGKILL)
        elif self._process is not None:
            self._process.kill()

    def _freeze(self) -> None:
        if self._around.group is not None and self._around.group.freeze(True):
            return
        if self._init is not None:
            self._stopped = True
            signal_all(self._init, signal.SIGSTOP)

    def _thaw(self) -> None:
        # both, where the freezer was too slow and signals did its work: either alone would leave the trial standing
        if self._around.group is not None and "freezer" in self._around.group.folders:
            self._around.group.freeze(False)
        if self._stopped and self._init is not None:
            self._stopped = False
            signal_all(self._init, signal.SIGCONT)

    def execute(self, command: tuple[str, ...], timeout: float = 30.0) -> ExecResult:
        if self._init is None or not self.running():
            raise LabauditError("the sandbox is not running")
        plan = {
            "join": self._around.group.joins if self._around.group else [],
            "pid": self._init,
            "user": self._around.user,
            "workdir": self.spec.workdir,
            "env": environment(self.spec, self._around.image_env),
            "argv": list(command),
            "seccomp": bpf_program().hex(),
        }
        descriptor = _memory_file(json.dumps(plan).encode())
        try:
            done = subprocess.run(
                [*_PYTHON, enter.__file__, str(descriptor)],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, env={}, pass_fds=(descriptor,),
                check=False,
            )  # fmt: skip
        finally:
            os.close(descriptor)
        return ExecResult(done.returncode, done.stdout, done.stderr)

    # --- the end ---

    def _after_exit(self) -> None:
        self._kill_all()  # whatever the harness left behind goes with it
        if self._around.group is not None:
            self._oom_kills = self._around.group.oom_kills()

    def wait(self, timeout: float | None = None) -> SandboxResult:
        end = self._ending(timeout)
        observed = self._observed(end)
        code = end.returncode if end.returncode >= 0 else 128 - end.returncode
        lease = self._around.lease
        return SandboxResult(
            exit_code=code,
            signal=code - 128 if 128 < code < 193 else None,
            cause=end.cause,
            stop_reason=end.reason,
            timed_out=end.cause == "timeout",
            oom=OomEvidence(None, code == 137, self._oom_kills),
            started_at=end.started_at,
            ended_at=end.ended_at,
            stdout=end.stdout,
            stderr=end.stderr,
            observed=observed,
            unenforced=self._unenforced(observed),
            network=network_evidence(
                self.spec.network,
                observed,
                "bubblewrap",
                proxied=lease is not None and bool(self._forwarders),
                proxy_alive=lease.alive() and lease.complete if lease else None,
                events=lease.events() if lease else (),
            ),
        )

    def _observed(self, end: Ending) -> Observed:
        seen = merge(read_report(end.report), self._host_view, "the sandbox ended before it could be looked at")
        limits = dataclasses.replace(
            self._limits_at_start,
            processes_rlimit=seen.limits.processes_rlimit,
            file_size_rlimit=seen.limits.file_size_rlimit,
        )
        return dataclasses.replace(
            seen, limits=limits, engine=self._around.facts,
            namespaces=self._namespaces or NotObserved("bubblewrap gave no account of its namespaces"),
            witnesses=tuple(dict.fromkeys((*seen.witnesses, "engine"))),
        )  # fmt: skip

    def _after_launch(self) -> None:
        gap = NotObserved(self._around.why_no_group)
        self._limits_at_start = self._around.group.limits() if self._around.group else ObservedLimits(gap, gap, gap)

    def _unenforced(self, observed: Observed) -> tuple[Unenforced, ...]:
        found = {item.what: item for item in not_in_force(self.spec, observed)}
        for what, why in (self._around.group.problems if self._around.group else {}).items():
            found.setdefault(what, Unenforced(what, why))
        return tuple(found.values())

    def _give_back(self) -> None:
        for forwarder in self._forwarders:
            forwarder.close()
        if self._init_fd is not None:
            with suppress(OSError):
                os.close(self._init_fd)
        if self._around.group is not None:
            self._around.group.remove()
        if self._around.lease is not None:
            self._around.lease.release()


def _memory_file(data: bytes) -> int:
    """A descriptor from which a child can read `data`; it has no name, so nothing is left behind."""
    descriptor = os.memfd_create("labaudit", 0)
    os.set_inheritable(descriptor, True)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def tree_has_shell(tree: Path) -> bool:
    """Whether the image has the /bin/sh that the init needs."""
    return any((tree / name).exists() or (tree / name).is_symlink() for name in ("bin/sh", "usr/bin/sh"))
