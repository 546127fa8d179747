"""Recorded events come back with their payloads: redacted, hashed again, and each hook event with its own line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labaudit.core.redaction import Redactor, Rule
from labaudit.errors import BadInput, Contradiction
from labaudit.evidence.recorder import Recorder
from labaudit.evidence.replayer import Replayer
from labaudit.records.schema_registry import validate
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.event_log import EventLog, LogIdentity, read_events

IDENTITY = LogIdentity("run-1", "t-1", "base", "k", 0, 1, "sha256:" + "ab" * 32)


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    redactor = Redactor([Rule.compile("sk-[a-z0-9]{8,}", "hash")], {"KEY": "topsecret"})
    return Recorder(EventLog(tmp_path / "events.jsonl", IDENTITY), ArtifactStore(tmp_path / "artifacts"), redactor)


def test_a_payload_is_stored_redacted_and_named_in_the_event(recorder: Recorder, tmp_path: Path) -> None:
    assert recorder.record("trial.started") == 0
    assert recorder.record("harness.said", {"text": "topsecret and sk-12345678"}, step_index=3, durable=True) == 1
    reference = recorder.keep(b"kept topsecret", "note")
    recorder.log.seal(tmp_path / "events.head")
    first, second, _ = read_events(tmp_path / "events.jsonl")
    assert "payload_ref" not in first
    assert second["redaction"] == {"applied": True}
    for event in (first, second):
        assert validate("event_envelope_v1", event) == []
    stored = recorder.store.get(str(second["payload_ref"]))
    assert b"topsecret" not in stored
    assert b"sk-12345678" not in stored
    assert recorder.references == {str(second["payload_ref"]): "event payload", reference: "note"}
    assert recorder.store.get(reference) == b"kept [secret KEY withheld]"


def test_a_replayer_finds_events_and_gives_their_payloads(trial: Any) -> None:
    trial.manifest()
    call = {"event_type": "model_call_end", "call_id": "m1", "outcome": {"status": "ok"}}
    events = trial.step(0, call) + trial.step(1)
    trial.stream(events)
    trial.finish()
    replayer = Replayer(trial.folder.events, trial.store)
    assert json.loads(replayer.replay(0)) == {"note": "begins"}
    assert json.loads(replayer.replay("hooks:1")) == events[1]
    assert replayer.find("step:1")["event_type"] == "agent_step_start"
    assert json.loads(replayer.replay("step:1")) == events[4]
    assert replayer.find("last")["event_type"] == "trial.sealed"
    for bad, word in [("last", "no payload"), ("seq:999", "no event 999"), ("step:9", "no event fits"), ("x", "seq:N")]:
        with pytest.raises(BadInput) as error:
            replayer.replay(bad)
        assert word in str(error.value)


def test_a_payload_that_was_changed_is_not_given(trial: Any) -> None:
    trial.manifest()
    trial.stream(trial.step(0))
    trial.finish()
    replayer = Replayer(trial.folder.events, trial.store)
    for selector in ("0", "hooks:0"):
        path = trial.store.path(replayer.find(selector)["payload_ref"])
        path.chmod(0o644)
        path.write_bytes(path.read_bytes() + b" ")
        with pytest.raises(Contradiction):
            replayer.replay(selector)
