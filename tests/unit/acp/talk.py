"""What these tests share: the scripted agent as a client's partner, and a trial session around a sandbox."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labaudit.core.clock import SystemClock
from labaudit.core.redaction import Redactor
from labaudit.core.strict_json import parse_json
from labaudit.engines.protocol import Engine, Sandbox, SandboxLabels, SandboxSpec
from labaudit.evidence.control_history import control_bytes, control_write
from labaudit.evidence.harness_manifest import HarnessManifest
from labaudit.evidence.hook_collector import HookCollector, HookStream
from labaudit.evidence.hook_rules import ControlWrite
from labaudit.harnesses.acp.client.client import ACPClient
from labaudit.harnesses.acp.harness import AcpHarness
from labaudit.harnesses.acp.wire.transcript import MAX_TRANSCRIPT, Transcript
from labaudit.harnesses.protocol import HarnessEnd, TrialSession
from labaudit.records.resolved import ResolvedExperiment

HERE = Path(__file__).parent
AGENT = HERE / "agents" / "scripted"
DOCUMENTS = HERE.parent / "records" / "documents"
IDS = {
    "run_id": "run-20261118T093000Z-0a1b2c3d",
    "trial_id": "base.t1.r0-89abcdef",
    "variant_id": "base",
    "task_id": "t1",
    "repl_idx": 0,
}


@contextmanager
def talking(behaviour: str, tmp_path: Path, **options: Any) -> Iterator[ACPClient]:
    """A client whose agent was started and initialized, with its transcript in `tmp_path`."""
    client = make_client(behaviour, tmp_path, **options)
    client.start()
    try:
        client.initialize()
        yield client
    finally:
        client.close(0.4)


def make_client(behaviour: str, tmp_path: Path, *, max_bytes: int = MAX_TRANSCRIPT, **options: Any) -> ACPClient:
    """A client that nobody started yet."""
    transcript = Transcript(tmp_path / "acp_transcript.jsonl", max_bytes=max_bytes)
    options.setdefault("request_timeout_s", 15.0)
    return ACPClient(tmp_path, [sys.executable, str(AGENT), behaviour], transcript=transcript, **options)


def wait_until(holds: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Waits for a state that another thread brings about; a busy machine may take its time."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def transcript_entries(tmp_path: Path) -> list[dict[str, Any]]:
    """The transcript's lines as values."""
    lines = (tmp_path / "acp_transcript.jsonl").read_bytes().splitlines()
    return [parse_json(line) for line in lines]  # type: ignore[misc]


def notes(tmp_path: Path, kind: str) -> list[str]:
    """The details of all notes of one kind."""
    return [entry["detail"] for entry in transcript_entries(tmp_path) if entry.get("kind") == kind]


class ControlFile:
    """The control file as a runner keeps it, with its history."""

    def __init__(self) -> None:
        self.history: list[ControlWrite] = [control_write(0, "continue")]

    def write(self, action: str, label: str | None = None) -> str:
        self.history.append(control_write(len(self.history), action, label))
        return self.history[-1].control_version

    def read(self) -> tuple[str, str, str | None]:
        now = self.history[-1]
        assert control_bytes(now.control_seq, now.action, now.label)
        return now.control_version, now.action, now.label


def resolved(tmp_path: Path, **harness: Any) -> ResolvedExperiment:
    """A resolved experiment whose harness is an ACP agent."""
    document = json.loads((DOCUMENTS / "resolved_experiment_v0_3" / "acp.json").read_text())
    budgets = harness.pop("budgets", {})
    plain = {
        "permissions": "deny_all", "dialect": "v1", "mcp_servers": [], "mode_id": None, "model": None,
        "control_plane": {"mode": "file", "path": "/state/lab_control.json"}, "tracing": {"mode": "none"},
    }  # fmt: skip
    fields = {**document["runtime"]["harness"], **plain, **harness}
    document["runtime"]["harness"] = {key: value for key, value in fields.items() if value is not None}
    document["runtime"]["harness"].setdefault("exec_digest", None)
    document["runtime"]["budgets"] = budgets
    return ResolvedExperiment.from_json(document)


def trial_input(task: dict[str, Any], bindings: dict[str, Any] | None = None) -> dict[str, Any]:
    """The input of one trial."""
    document: dict[str, Any] = json.loads((DOCUMENTS / "trial_input_v1" / "full.json").read_text())
    return {**document, "ids": IDS, "task": task, "bindings": bindings or {}}


def open_sandbox(engine: Engine, behaviour: str, tmp_path: Path, *, env: dict[str, str] | None = None) -> Sandbox:
    """A sandbox in which the scripted agent waits to be started; its folder stands at /harness."""
    image = engine.resolve_image(None)
    folder = tmp_path / "harness"
    shutil.copytree(AGENT, folder / "scripted", ignore=shutil.ignore_patterns("__pycache__"))
    python = sys.executable if engine.name == "process" else "python3"
    return engine.open(
        SandboxSpec(
            image=image.id,
            command=(python, "/harness/scripted", behaviour),
            labels=SandboxLabels(IDS["run_id"], IDS["trial_id"]),  # type: ignore[arg-type]
            env={"OUT": "/out", **(env or {})},
            harness=folder,
            grace_s=1.0,
            attach=True,
        )
    )


def run_in(
    engine: Engine, behaviour: str, tmp_path: Path, *, env: dict[str, str] | None = None, **options: Any
) -> tuple[HarnessEnd, HookStream]:
    """One trial of the scripted agent; its hook stream must be valid whatever the agent did."""
    sandbox = open_sandbox(engine, behaviour, tmp_path, env=env)
    try:
        session, control = trial_session(sandbox, tmp_path, **options)
        end = AcpHarness().run(session)
    finally:
        sandbox.remove()
    manifest = HarnessManifest.load(end.written["harness_manifest.json"])
    stream = HookCollector().collect(end.written["harness_events.jsonl"], manifest, IDS, control.history)
    assert stream.valid, stream.findings
    return end, stream


def run_until_time_is_up_in_a_turn(
    engine: Engine, behaviour: str, tmp_path: Path, **options: Any
) -> tuple[HarnessEnd, HookStream]:
    """A trial whose time ran out in its first turn; on a busy machine a short one may be over before the prompt."""
    for timeout_s in (1.0, 4.0, 16.0, 64.0):
        folder = tmp_path / f"{timeout_s:g}"
        folder.mkdir()
        end, stream = run_in(engine, behaviour, folder, timeout_s=timeout_s, **options)
        acp = (end.trial_output or {})["ext"]["acp"]  # type: ignore[index]
        if acp.get("turns"):
            return end, stream
    raise AssertionError("the agent did not take a prompt within a minute")


def trial_session(
    sandbox: Sandbox, tmp_path: Path, *, timeout_s: float = 20.0, task: dict[str, Any] | None = None, **options: Any
) -> tuple[TrialSession, ControlFile]:
    """A session over an open sandbox; `options` go to the harness part of the spec but for poll, redactor, bindings."""
    control = options.pop("control", None) or ControlFile()
    staging = tmp_path / "staging"
    staging.mkdir()
    poll = options.pop("poll", lambda: None)
    redactor = options.pop("redactor", None) or Redactor()
    session = TrialSession(
        trial_input=trial_input(task or {"id": "t1", "prompt": "hello"}, options.pop("bindings", None)),
        resolved=resolved(tmp_path, **options),
        sandbox=sandbox,
        staging=staging,
        timeout_s=timeout_s,
        clock=SystemClock(),
        on_started=lambda: None,
        poll=poll,
        write_control=control.write,
        read_control=control.read,
        redactor=redactor,
    )
    return session, control
