"""From an out folder to an observation: each level exactly as shown, and every lack of evidence as its own answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from labaudit.core.redaction import Redactor, Rule
from labaudit.evidence.observation import NotObserved
from labaudit.evidence.otlp.received import ReceivedSpans
from labaudit.grading.grades import grade_trial
from labaudit.store.event_log import read_events

MODEL = {"event_type": "model_call_end", "call_id": "m1", "outcome": {"status": "ok"}}
TOOL = {"event_type": "tool_call_end", "call_id": "c1", "tool": {"name": "add"}, "outcome": {"status": "ok"}}


def usage(tokens_in: int, tokens_out: int) -> dict[str, Any]:
    return MODEL | {"usage": {"tokens_in": tokens_in, "tokens_out": tokens_out}}


def test_nothing_but_input_and_output_is_cli_basic(trial: Any) -> None:
    trial.level = "cli_basic"
    found, observed = trial.finish()
    assert found.stream is None
    assert observed.level.observed == "cli_basic"
    assert not observed.manifest.hard_failure
    assert isinstance(observed.hooks.turn_count, NotObserved)
    assert observed.events.chain_ok
    assert grade_trial(observed).replay.value == "none"


def test_a_valid_stream_shows_cli_events_with_its_counts(trial: Any) -> None:
    trial.manifest()
    trial.stream(trial.step(0, usage(5, 7), TOOL) + trial.step(1, usage(1, 2)))
    observed = trial.finish()[1]
    assert observed.level.observed == observed.level.claimed == "cli_events"
    assert (observed.hooks.turn_count, observed.hooks.step_count, observed.hooks.tool_calls) == (2, 2, 1)
    assert (observed.hooks.tokens_in, observed.hooks.tokens_out) == (6, 9)
    assert observed.hooks.acks_verified == 2
    copies = [event for event in read_events(trial.folder.events) if event["source"] == "hooks"]
    assert [event["event_type"] for event in copies] == [
        "agent_step_start", "model_call_end", "tool_call_end", "agent_step_end", "control_ack",
        "agent_step_start", "model_call_end", "agent_step_end", "control_ack",
    ]  # fmt: skip
    payload = trial.store.get(copies[0]["payload_ref"]).splitlines()
    assert json.loads(payload[1])["call_id"] == "m1"
    assert trial.recorder.references[copies[0]["payload_ref"]] == "hook events"
    assert grade_trial(observed).interpretability.value == "step"


def test_a_header_alone_shows_nothing(trial: Any) -> None:
    trial.manifest()
    header = {"hooks_schema_version": "hook_events_v1", "integration_level": "cli_events"}
    trial.stream([trial.event("hooks.header", step_semantics="one model call with its tools", **header)])
    observed = trial.finish()[1]
    assert observed.hooks.valid
    assert observed.level.observed == "cli_basic"


def test_verified_control_at_every_step_end_is_sdk_control_when_claimed(trial: Any) -> None:
    trial.manifest("sdk_control")
    trial.stream(trial.step(0, MODEL))
    assert trial.finish()[1].level.observed == "sdk_control"


def test_the_same_stream_stays_cli_events_when_no_more_is_claimed(trial: Any) -> None:
    trial.level = "sdk_full"
    trial.manifest("cli_events", control_plane={"mode": "file", "path": "/state/lab_control.json"})
    trial.stream(trial.step(0, MODEL))
    level = trial.finish()[1].level
    assert (level.expected, level.claimed, level.observed) == ("sdk_full", "cli_events", "cli_events")
    assert "the manifest claims cli_events only" in level.caps


def test_a_manifest_that_claims_more_than_was_seen_is_held_to_what_was_seen(trial: Any) -> None:
    trial.manifest("sdk_full")
    trial.stream(trial.step(0, MODEL))
    level = trial.finish()[1].level
    assert (level.claimed, level.observed) == ("sdk_full", "sdk_control")
    assert level.caps == ("no causal boundary was recorded",)


def test_an_ack_without_a_control_log_is_no_verified_control(trial: Any) -> None:
    trial.manifest("sdk_control")
    trial.stream(trial.step(0, MODEL))
    trial.folder.control_log.unlink()
    level = trial.finish()[1].level
    assert level.observed == "cli_events"


def test_received_spans_show_otel(trial: Any, tmp_path: Any) -> None:
    spool = tmp_path / "spans.jsonl"
    spool.write_bytes(b'{"resourceSpans":[]}\n')
    trial.level = "otel"
    trial.manifest("otel")
    found, observed = trial.finish(received=ReceivedSpans(spool, 3, 1))
    assert observed.level.observed == "otel"
    assert (observed.traces.mode, observed.traces.span_count) == ("otlp", 3)
    assert observed.sources["traces"].covered == 3
    entry = found.traces.manifest.traces[0]
    assert trial.store.get(entry.artifact_ref) == spool.read_bytes()


def test_a_harness_without_spans_is_not_otel_whatever_it_claims(trial: Any) -> None:
    trial.level = "otel"
    trial.manifest("otel")
    assert trial.finish()[1].level.observed == "cli_basic"


@pytest.mark.parametrize("allowed", [False, True])
def test_a_missing_manifest_is_a_hard_failure_unless_leave_was_given(trial: Any, allowed: bool) -> None:
    trial.missing_allowed = allowed
    trial.stream(trial.step(0, MODEL))
    observed = trial.finish()[1]
    assert observed.manifest.hard_failure is not allowed
    assert observed.level.observed == "cli_basic"
    assert observed.hooks.present
    assert not observed.hooks.valid
    assert observed.hooks.findings_by_rule == {"H12": 1}
    assert "R03" in {cap.rule for cap in grade_trial(observed).replay.caps}


@pytest.mark.parametrize(("profile", "fails"), [("replay_strict_v2", True), ("hermetic_functional_v2", False)])
def test_a_missing_ack_fails_a_strict_trial_and_downgrades_another(trial: Any, profile: str, fails: bool) -> None:
    trial.profile = profile
    trial.manifest()
    trial.stream(trial.step(0, MODEL, ack=False) + trial.step(1))
    observed = trial.finish()[1]
    assert observed.hooks.fails_trial is fails
    assert observed.hooks.acks_missing == 1
    assert observed.hooks.findings_by_rule == {"H3": 1}
    assert isinstance(observed.hooks.turn_count, NotObserved)
    assert observed.sources["hooks"].present is False
    assert observed.sources["hooks"].total == 6
    grades = grade_trial(observed)
    assert (grades.replay.value, grades.interpretability.value) == ("none", "output")


def test_a_stream_that_a_timeout_cut_off_in_mid_step_is_degraded_not_broken(trial: Any) -> None:
    trial.end_cause = "timeout"
    trial.manifest()
    events = trial.step(0, MODEL) + trial.step(1)[:1]
    trial.stream(events)
    observed = trial.finish()[1]
    assert observed.hooks.valid
    assert observed.hooks.findings_by_rule == {"H2": 1}
    assert observed.hooks.turn_count == 1


def test_a_promised_stream_that_is_not_there_fails_a_strict_trial(trial: Any) -> None:
    trial.profile = "replay_strict_v2"
    trial.manifest()
    observed = trial.finish()[1]
    assert observed.hooks.fails_trial
    assert observed.hooks.findings[0].rule == "F3"


def test_the_events_path_of_the_manifest_is_followed_inside_out_and_refused_outside(trial: Any) -> None:
    (trial.out / "deep").mkdir()
    trial.manifest(hooks={"schema_version": "hook_events_v1", "events_path": "/out/deep/e.jsonl"})
    trial.stream(trial.step(0, MODEL), "deep/e.jsonl")
    assert trial.finish()[1].level.observed == "cli_events"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "/out/../etc/passwd", "link.jsonl"])
def test_an_events_path_that_leaves_the_out_folder_is_refused(trial: Any, path: str) -> None:
    (trial.out / "link.jsonl").symlink_to("/etc/passwd")
    trial.manifest(hooks={"schema_version": "hook_events_v1", "events_path": path})
    found, observed = trial.finish()
    assert found.problems
    assert not trial.folder.harness_events.exists()
    assert observed.level.observed == "cli_basic"
    assert "evidence.refused" in observed.events.types


def test_secrets_are_out_of_everything_that_is_stored(trial: Any) -> None:
    trial.redactor = Redactor([Rule.compile("sk-[A-Za-z0-9]{8,}", "hash")], {"KEY": "topsecretvalue"})
    trial.manifest()
    call = MODEL | {"ext": {"header": "Bearer topsecretvalue", "key": "sk-abcdefgh1234"}}
    trial.stream(trial.step(0, call))
    observed = trial.finish()[1]
    assert observed.hooks.valid
    stored = [trial.folder.harness_events.read_bytes(), trial.folder.events.read_bytes()]
    stored += [trial.store.get(reference) for reference in trial.recorder.references]
    assert not any(b"topsecretvalue" in data or b"sk-abcdefgh1234" in data for data in stored)
    assert b"[secret KEY withheld]" in trial.folder.harness_events.read_bytes()


def test_a_log_whose_bytes_changed_supports_no_grade(trial: Any) -> None:
    trial.level = "cli_basic"
    trial.finish()
    data = trial.folder.events.read_bytes()
    trial.folder.events.write_bytes(data.replace(b"trial.started", b"trial.startex"))
    observed = trial.observe()
    assert observed.events.present
    assert not observed.events.chain_ok
    assert grade_trial(observed).isolation.value == "not_observed"


def test_an_observation_is_the_same_from_the_stored_files_alone(trial: Any) -> None:
    trial.manifest("sdk_control")
    trial.stream(trial.step(0, MODEL, TOOL))
    first = trial.finish()[1]
    for path in trial.out.iterdir():
        path.unlink()
    assert trial.observe() == first
    assert json.loads(json.dumps(first.as_json()))["level"]["observed"] == "sdk_control"


def test_a_control_log_that_contradicts_itself_vouches_for_nothing(trial: Any) -> None:
    trial.manifest("sdk_control")
    trial.stream(trial.step(0, MODEL))
    trial.finish()
    data = trial.folder.control_log.read_bytes()
    trial.folder.control_log.write_bytes(data.replace(b'"continue"', b'"stop"'))
    assert trial.observe().level.observed == "cli_events"
