"""The engine without isolation: the harness runs as a plain child process with the runner's own rights.

It exists for debugging and for machines where nothing else works; it is never picked by `auto`, and everything that
it does not enforce is listed, so that the trial is graded leaky.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from labaudit.core.digest import hash_file
from labaudit.engines.host.staging import Staging
from labaudit.engines.host.surfaces import Surfaces, reap_folders
from labaudit.engines.observed import nothing_observed
from labaudit.engines.protocol import EngineName, ExecResult, Reaped, ResolvedImage
from labaudit.engines.result import NetworkEvidence, OomEvidence, SandboxResult, Unenforced
from labaudit.engines.running.inputs import staged_inputs
from labaudit.engines.running.life import missing_command
from labaudit.engines.running.local_sandbox import LocalSandbox
from labaudit.engines.spec import INSIDE, LoopbackService, SandboxSpec, SurfacePaths
from labaudit.errors import BadInput, EnvironmentLacks, PolicyUnmet
from labaudit.network.forward import Forwarder

_NOT_HERE = (
    ("read_only_root", "the process engine shows the host's own file system"),
    ("network", "the process engine shares the host's network"),
    ("capabilities", "the process keeps the runner's rights"),
    ("seccomp", "the process engine sets no filter"),
    ("memory_mb", "the process engine has no control group"),
    ("cpus", "the process engine has no control group"),
    ("pids", "the process engine has no control group"),
    ("process_containment", "a child that starts a session of its own outlives the trial"),
)


class ProcessEngine:
    """Runs harnesses as child processes."""

    name: EngineName = "process"

    def __init__(self) -> None:
        self._staging = Staging()

    def facts(self) -> dict[str, object]:
        return {"engine": self.name, "kernel": platform.release(), "python": platform.python_version()}

    def resolve_image(self, reference: str | None) -> ResolvedImage:
        """There is no image: the id is the digest of the interpreter that the harness will most likely use."""
        digest, _ = hash_file(Path(sys.executable).resolve())
        note = "the process engine uses no image; the id is the digest of the host's Python interpreter"
        return ResolvedImage(f"sha256:{digest}", reference or "host", "host", (note,))

    def image_archive(self, image_id: str, folder: Path) -> Path | None:
        return None

    def open(self, spec: SandboxSpec) -> ProcessSandbox:
        if spec.network.mode == "allowlist_enforced":
            raise PolicyUnmet(
                "the process engine cannot enforce an allowlist",
                where="runtime.network.mode",
                hint="use the docker or bubblewrap engine, or mode full (graded as such)",
            )
        surfaces = Surfaces.create(spec.limits, (os.geteuid(), os.getegid()))
        try:
            return ProcessSandbox(spec, surfaces, self._staging)
        except BaseException:
            surfaces.remove()
            raise

    def reap(self) -> tuple[Reaped, ...]:
        return reap_folders()

    def close(self) -> None:
        self._staging.close()

    def __enter__(self) -> ProcessEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ProcessSandbox(LocalSandbox):
    """One child process. Surfaces have their host paths inside too, so trial_input.json must name those."""

    reports = False

    def __init__(self, spec: SandboxSpec, surfaces: Surfaces, staging: Staging) -> None:
        inputs = staged_inputs(spec, staging)
        tmp = surfaces / "tmp"
        tmp.mkdir()
        paths = dataclasses.replace(surfaces.host_paths(inputs.dataset, inputs.harness), tmp=str(tmp))
        mounts = {target: str(path) for path, target in inputs.mounts}
        # a mount at a surface's place replaces the surface
        self._places = {**_surface_places(paths), **mounts}
        super().__init__(spec, surfaces, paths, dataclasses.replace(paths, **_replaced(mounts)))
        self._forwarders: list[Forwarder] = []
        try:
            for service in spec.services:
                self._forwarders.append(_forward(service))
        except BaseException:
            self._give_back()
            raise

    def _launch(self, stdin: int, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        program, *words = self.spec.command
        env = self._environment()
        argv = (self._program(program), *(self._map(word) for word in words))
        if shutil.which(argv[0], path=env["PATH"]) is None:
            raise missing_command(self.spec.command, "process engine")
        workdir = self._map(self.spec.workdir)
        try:
            process = subprocess.Popen(
                argv, stdin=stdin, stdout=stdout, stderr=stderr, cwd=workdir, env=env, start_new_session=True
            )
        except OSError as error:
            raise BadInput(f"the command cannot be started: {error.strerror}", where=str(argv[0])) from error
        self._bound(process.pid)
        return process

    def _environment(self) -> dict[str, str]:
        """The harness's variables; a value that is a path below a surface follows the surface."""
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": self._host.workspace, "TMPDIR": self._host.tmp}
        return {**env, **{name: self._map(value) for name, value in self.spec.env.items()}}

    def _bound(self, pid: int) -> None:
        """From outside, because code between fork and exec may hang where the runner has threads."""
        largest = max(self.spec.limits.out_mb, self.spec.limits.workspace_mb) << 20
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, largest))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))

    def _program(self, word: str) -> str:
        """As `_map`; an interpreter of this host that lies below /tmp stays where it is."""
        mapped = self._map(word)
        return word if not Path(mapped).exists() and os.access(word, os.X_OK) else mapped

    def _map(self, word: str) -> str:
        """A path below a surface as the host sees it; anything else as it is."""
        for inside, host in self._places.items():
            if word == inside or word.startswith(f"{inside}/"):
                return host + word[len(inside) :]
        return word

    def _signal(self, number: int) -> None:
        if self._process is not None:
            os.kill(self._process.pid, number)

    def _kill_all(self) -> None:
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: int) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _after_exit(self) -> None:
        self._signal_group(signal.SIGKILL)

    def _freeze(self) -> None:
        self._signal_group(signal.SIGSTOP)

    def _thaw(self) -> None:
        self._signal_group(signal.SIGCONT)

    def execute(self, command: tuple[str, ...], timeout: float = 30.0) -> ExecResult:
        done = subprocess.run(
            [self._map(word) for word in command], capture_output=True, timeout=timeout, check=False,
            cwd=self._map(self.spec.workdir), env=self._environment(), stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return ExecResult(done.returncode, done.stdout, done.stderr)

    def wait(self, timeout: float | None = None) -> SandboxResult:
        end = self._ending(timeout)
        code = end.returncode
        why = "the process engine has no sandbox to look into"
        return SandboxResult(
            exit_code=code if code >= 0 else 128 - code,
            signal=-code if code < 0 else None,
            cause=end.cause,
            stop_reason=end.reason,
            timed_out=end.cause == "timeout",
            oom=OomEvidence(None, code in (-signal.SIGKILL, 137), None),
            started_at=end.started_at,
            ended_at=end.ended_at,
            stdout=end.stdout,
            stderr=end.stderr,
            observed=dataclasses.replace(nothing_observed(why), uid=os.geteuid(), gid=os.getegid()),
            unenforced=(*(Unenforced(what, reason) for what, reason in _NOT_HERE), *self.surfaces.unenforced),
            network=NetworkEvidence(self.spec.network.mode, "full", "none", "high", self.spec.network.allowed_hosts),
        )

    def _give_back(self) -> None:
        for forwarder in self._forwarders:
            forwarder.close()


_FIELDS = ("input", "out", "workspace", "state", "dataset", "harness", "tmp")


def _surface_places(host: SurfacePaths) -> dict[str, str]:
    pairs = [(getattr(INSIDE, name), getattr(host, name)) for name in _FIELDS]
    return {inside: path for inside, path in pairs if path}


def _replaced(mounts: Mapping[str, str]) -> dict[str, str]:
    return {name: mounts[getattr(INSIDE, name)] for name in _FIELDS if getattr(INSIDE, name) in mounts}


def _forward(service: LoopbackService) -> Forwarder:
    try:
        return Forwarder.listen(service.port, service.socket)
    except OSError as error:
        raise EnvironmentLacks(
            f"port {service.port} for the service {service.name} cannot be had: {error.strerror}",
            where="process engine",
            hint="without a network of its own only one trial at a time can have it: use --workers 1",
        ) from error
