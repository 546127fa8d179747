"""A trial folder that tests fill, and the small documents that go into it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labaudit.core.clock import SystemClock
from labaudit.core.redaction import Redactor
from labaudit.evidence.harvest import Harvest, HarvestOrder, harvest
from labaudit.evidence.observation import ObservedTrial
from labaudit.evidence.observe import observe_trial
from labaudit.evidence.recorder import Recorder
from labaudit.evidence.trial_facts import SandboxFacts, TrialFacts
from labaudit.harnesses.control_plane import ControlPlane
from labaudit.records.ids import Ids
from labaudit.records.resolved import ResolvedExperiment
from labaudit.store import atomic
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.event_log import EventLog, LogIdentity
from labaudit.store.run_folder import TrialFolder

IDS = {"run_id": "run-1", "trial_id": "t-1", "variant_id": "base", "task_id": "k", "repl_idx": 0}
DIGEST = "sha256:" + "ab" * 32
TS = "2026-11-18T09:30:00.000000Z"


class Trial:
    """One trial with an out folder, driven through the same calls as the runner's."""

    def __init__(self, root: Path, resolved_document: Callable[..., dict[str, Any]]) -> None:
        self.out = root / "out"
        self.out.mkdir(parents=True)
        self.folder = TrialFolder(root / "trial")
        self.folder.path.mkdir()
        self.store = ArtifactStore(root / "artifacts")
        self.control = ControlPlane(root / "state" / "lab_control.json", self.folder.control_log)
        self.version = self.control.write("continue")
        self.redactor = Redactor()
        self.level, self.profile, self.end_cause = "cli_events", "hermetic_functional_v2", "exited"
        self.missing_allowed = False
        self._document = resolved_document
        self._seq = 0

    def manifest(self, level: str = "cli_events", **changes: Any) -> None:
        """A manifest that fits the level."""
        value: dict[str, Any] = {
            "schema_version": "harness_manifest_v1",
            "created_at": TS,
            "integration_level": level,
            "harness": {"name": "fixture", "exec_digest": DIGEST},
            "step": {"semantics": "one model call with its tools"},
        }
        if level != "otel":
            value["hooks"] = {"schema_version": "hook_events_v1", "events_path": "/out/harness_events.jsonl"}
        if level in ("sdk_control", "sdk_full"):
            value["control_plane"] = {"mode": "file", "path": "/state/lab_control.json"}
        if level == "otel":
            value["tracing"] = {"mode": "otlp", "otlp_endpoint": "http://127.0.0.1:4318"}
        (self.out / "harness_manifest.json").write_text(json.dumps(value | changes))

    def event(self, event_type: str, **fields: Any) -> dict[str, Any]:
        """The next event of this trial, as a value."""
        event = {"event_type": event_type, "ts": TS, "seq": self._seq, "ids": IDS, **fields}
        self._seq += 1
        return event

    def step(self, index: int, *calls: dict[str, Any], ack: bool = True) -> list[dict[str, Any]]:
        """The events of one whole step around `calls`."""
        events = [self.event("agent_step_start", step_index=index)]
        events += [self.event(**{"step_index": index, **call}) for call in calls]
        events.append(self.event("agent_step_end", step_index=index))
        if ack:
            version, action, _ = self.control.read()
            events.append(self.event("control_ack", step_index=index, control_version=version, action_observed=action))
        return events

    def stream(self, events: list[dict[str, Any]], name: str = "harness_events.jsonl") -> None:
        """Writes the hook stream."""
        (self.out / name).write_text("".join(json.dumps(event) + "\n" for event in events))

    @property
    def resolved(self) -> ResolvedExperiment:
        document = self._document()
        document["design"]["sanitization_profile"] = self.profile
        document["runtime"]["harness"]["integration_level"] = self.level
        return ResolvedExperiment.from_json(document)

    def finish(self, **order: Any) -> tuple[Harvest, ObservedTrial]:
        """Harvest, inventory, sealed log, observation."""
        ids = Ids.from_json(IDS)
        identity = LogIdentity(**IDS, attempt=1, resolved_digest=DIGEST)  # type: ignore[arg-type]
        recorder = Recorder(EventLog(self.folder.events, identity), self.store, self.redactor)
        self.recorder = recorder
        recorder.record("trial.started", {"note": "begins"})
        strict = self.profile == "replay_strict_v2"
        cut = self.end_cause != "exited"
        found = harvest(
            HarvestOrder(self.out, ids, strict, cut_short=cut, **order), self.folder, recorder, SystemClock()
        )
        self.inventory()
        recorder.log.seal(self.folder.events_head)
        return found, self.observe()

    def observe(self) -> ObservedTrial:
        facts = TrialFacts(Ids.from_json(IDS), 1, DIGEST, "completed", "success")
        return observe_trial(self.folder, self.resolved, facts)

    def inventory(self) -> None:
        facts = SandboxFacts(
            engine="bubblewrap",
            end_cause=self.end_cause,  # type: ignore[arg-type]
            missing_manifest_allowed=self.missing_allowed,
        )
        value = {
            "schema_version": "state_inventory_v1",
            "ids": IDS,
            "sanitization_profile": self.profile,
            "integration_level": self.level,
            "mounts": [],
            "network": {
                "mode_requested": "none",
                "mode_effective": "none",
                "enforcement_effective": "bubblewrap_netns",
                "bypass_risk": "none",
                "egress_self_test": {"performed": False, "cases": []},
            },
            "harness_identity": {"exec_digest": DIGEST},
            "violations": {"state_leak": False, "profile_invariant_violation": False},
            "ext": facts.as_ext(),
        }
        atomic.write_json(self.folder.state_inventory, value)


@pytest.fixture
def trial(tmp_path: Path, resolved_document: Callable[..., dict[str, Any]]) -> Trial:
    return Trial(tmp_path, resolved_document)


@pytest.fixture(scope="session")
def resolved_document() -> Callable[..., dict[str, Any]]:
    """A resolved experiment as a JSON object, fresh at each call."""
    from tests.make_run import RunPlan
    from tests.make_run import resolved_document as document

    data = b'{"id":"k"}\n'
    return lambda: json.loads(json.dumps(document(data, RunPlan())))
