"""One trial as a container: created, attached, started, watched, and removed."""

from __future__ import annotations

import dataclasses
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, cast

import docker

from labaudit.engines.docker.account import account
from labaudit.engines.docker.api import BROKEN, Facts, calling, create, is_podman, said_by
from labaudit.engines.docker.attached import StdinWriter, attach, demultiplex
from labaudit.engines.docker.creation import Places, trial_container
from labaudit.engines.docker.joined import JoinedNetwork
from labaudit.engines.host.ownership import labels_of
from labaudit.engines.host.surfaces import Surfaces
from labaudit.engines.observation.host_view import host_report, namespaces_of
from labaudit.engines.observation.in_force import not_in_force
from labaudit.engines.observation.init_script import GO
from labaudit.engines.observation.merge import merge
from labaudit.engines.observation.network_facts import network_evidence
from labaudit.engines.observation.read_report import command_was_missing, read_report
from labaudit.engines.observed import NotObserved, Observed
from labaudit.engines.protocol import ExecResult, Streams
from labaudit.engines.result import OomEvidence, SandboxResult
from labaudit.engines.running.life import REPORT_WITHIN, SandboxLife, missing_command, thread
from labaudit.engines.spec import SandboxSpec, SurfacePaths, paths_inside
from labaudit.errors import BadInput, EnvironmentLacks, LabauditError

_STREAMS_END_WITHIN = 10.0


@dataclass(frozen=True)
class Surroundings:
    """What the engine gives to each of its sandboxes."""

    client: docker.APIClient
    places: Places
    network: JoinedNetwork | None
    facts: dict[str, object]


class DockerSandbox(SandboxLife):
    """A container."""

    def __init__(self, spec: SandboxSpec, surfaces: Surfaces, host: SurfacePaths, around: Surroundings) -> None:
        super().__init__(spec, surfaces, host, paths_inside(spec))
        self._around, self._client = around, around.client
        self._container = ""
        self._connection: socket.socket | None = None
        self._at_start: Facts = {}
        self._state: Facts = {}
        self._lost = ""
        self._host_view: Observed | None = None
        self._namespaces: dict[str, str] = {}

    @property
    def client(self) -> docker.APIClient:
        """The connection that this container was made through."""
        return self._client

    @property
    def network(self) -> JoinedNetwork | None:
        """The companions whose namespace the trial joins, if any."""
        return self._around.network

    # --- start ---

    def start(self) -> None:
        self._prepare()
        try:
            self._create_and_start()
        except BaseException:
            self._not_launched()
            raise
        self._err.reported.wait(REPORT_WITHIN)
        self._look_from_outside()
        self._let_go()
        if command_was_missing(self._err.report):
            self._ended.wait(5)
            raise missing_command(self.spec.command, "docker engine")

    def _create_and_start(self) -> None:
        joined = self._around.network.container if self._around.network else None
        body = trial_container(self.spec, self._around.places, labels_of(self.spec.labels, "trial"), joined=joined)
        with calling("create the container"):
            self._container = create(self._client, body, name=f"labaudit-{self.surfaces.id}")
        try:
            # Podman looks for the program as early as here
            self._connection = attach(self._client, self._container, stdin=True)
            self._client.start(self._container)
        except BROKEN as error:
            raise _start_error(error, self.spec) from error
        self._launched = True
        demux = thread(demultiplex, self._connection, self._out, self._err)
        thread(self._reap, demux)

    def _let_go(self) -> None:
        """Tells the waiting init to start the harness; its stdin stays open only where the spec asked to attach."""
        assert self._connection is not None, "attached before the start"
        stdin = StdinWriter(self._connection)
        with suppress(OSError):
            stdin.write(GO)
        if self.spec.attach:
            self._streams = Streams(cast("BinaryIO", stdin), *self._live_readers)
        else:
            stdin.close()

    def _look_from_outside(self) -> None:
        """The engine's account and the kernel's, while the container runs."""
        with suppress(*BROKEN):
            self._at_start = self._client.inspect_container(self._container)
        pid = (self._at_start.get("State") or {}).get("Pid") or 0
        if pid and (report := host_report(pid)) is not None:
            self._host_view = dataclasses.replace(read_report(report), witnesses=("host",))
            self._namespaces = namespaces_of(pid)

    def _reap(self, demux: threading.Thread) -> None:
        """Follows the container to its end. An engine that dies in between makes the trial lost, not failed."""
        try:
            # without a timeout: with one, the library may raise ConnectionError for a container that is merely slow
            self._client.wait(self._container, timeout=None)
            self._ended_at = datetime.now(UTC)
            self._state = self._client.inspect_container(self._container).get("State") or {}
        except BROKEN as error:
            self._ended_at = datetime.now(UTC)
            self._lost = said_by(error)
        demux.join(_STREAMS_END_WITHIN)
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        self._close_captures()
        self._ended.set()

    # --- signals ---

    def _signal(self, number: int) -> None:
        with suppress(*BROKEN):
            self._client.kill(self._container, signal=number)

    def _kill_all(self) -> None:
        self._signal(signal.SIGKILL)

    def _freeze(self) -> None:
        with calling("pause the container"):
            self._client.pause(self._container)

    def _thaw(self) -> None:
        with suppress(*BROKEN):
            self._client.unpause(self._container)

    def execute(self, command: tuple[str, ...], timeout: float = 30.0) -> ExecResult:
        if not self.running():
            raise LabauditError("the sandbox is not running")
        with calling("run a command in the container"):
            made = self._client.exec_create(self._container, list(command), stdin=False)["Id"]
            answers: list[tuple[bytes | None, bytes | None]] = []
            worker = thread(lambda: answers.append(self._client.exec_start(made, demux=True)))
            worker.join(timeout)
            if not answers:
                raise LabauditError(f"the command did not end within {timeout:g} s")
            code = self._client.exec_inspect(made)["ExitCode"]
        out, err = answers[0]
        return ExecResult(code, out or b"", err or b"")

    # --- the end ---

    def wait(self, timeout: float | None = None) -> SandboxResult:
        self._await_end(timeout)
        if self._captured is None:
            raise LabauditError("the sandbox ended without a result")
        observed, state, network = self._observed(), self._state, self._around.network
        code = state.get("ExitCode") if state else None
        lost = bool(self._lost) or code is None
        return SandboxResult(
            exit_code=code,
            signal=code - 128 if code is not None and 128 < code < 193 else None,
            cause="lost" if lost else (self._cause or "exited"),
            stop_reason=f"the engine lost the container: {self._lost}" if lost else self._reason,
            timed_out=self._cause == "timeout",
            oom=OomEvidence(self._oom_flag(), code == 137, None),
            started_at=self._started_at,
            ended_at=self._ended_at,
            stdout=self._captured[0],
            stderr=self._captured[1],
            observed=observed,
            unenforced=not_in_force(self.spec, observed),
            network=network_evidence(
                self.spec.network,
                observed,
                "docker",
                proxied=network is not None and network.lease is not None,
                proxy_alive=network.alive() and network.lease.complete if network and network.lease else None,
                events=network.lease.events() if network and network.lease else (),
            ),
            engine_error=str(state.get("Error") or "") if state else self._lost,
        )

    def _oom_flag(self) -> bool | None:
        """The engine's flag. Podman's speaks of the first process alone, which is our init: its no says nothing."""
        flag = self._state.get("OOMKilled")
        return True if flag else (None if flag is None or is_podman(self._client) else False)

    def _observed(self) -> Observed:
        gone = "the container ended before it could be looked at, or its processes are not visible from here"
        seen = merge(read_report(self._err.report), self._host_view, gone)
        witnesses = (*seen.witnesses, "engine") if self._at_start else seen.witnesses
        return dataclasses.replace(
            seen,
            namespaces=self._namespaces or NotObserved(gone),
            engine=account(self._around.facts, self._at_start) if self._at_start else dict(self._around.facts),
            witnesses=tuple(dict.fromkeys(witnesses)),
        )

    def _give_back(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._container:
            with suppress(*BROKEN):
                self._client.remove_container(self._container, force=True, v=True)
        if self._around.network is not None:
            self._around.network.release()


def _start_error(error: BaseException, spec: SandboxSpec) -> LabauditError:
    words = said_by(error)
    if "/bin/sh" in words:
        return EnvironmentLacks(
            "the image has no /bin/sh, which the sandbox's init needs",
            where=spec.image,
            hint="use an image with a shell",
        )
    if "chdir" in words or "cwd" in words:
        return BadInput(f"the working folder cannot be entered: {words}", where=spec.workdir)
    return EnvironmentLacks(f"the engine could not start the container: {words}", where="docker")
