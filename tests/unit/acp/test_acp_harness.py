"""The ACP harness over a real sandbox: whatever the agent does, the trial ends, labelled, with valid evidence."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from labaudit.core.redaction import Redactor
from labaudit.engines.process_engine import ProcessEngine
from labaudit.evidence.hook_collector import HookStream
from labaudit.evidence.observation import NotObserved
from labaudit.harnesses.protocol import HarnessEnd
from labaudit.records import document_rules
from labaudit.records.schema_registry import validate
from labaudit.store.event_log import read_events
from tests.unit.acp.talk import ControlFile, run_in, run_until_time_is_up_in_a_turn, transcript_entries


def run_trial(
    behaviour: str, tmp_path: Path, *, run: Any = run_in, **options: Any
) -> tuple[HarnessEnd, HookStream, list[dict[str, Any]]]:
    with ProcessEngine() as engine:
        end, stream = run(engine, behaviour, tmp_path, **options)
    output = dict(end.trial_output or {})
    assert validate("trial_output_v1", output) == []
    assert document_rules.check_trial_output(output) == []
    return end, stream, list(read_events(end.written["harness_events.jsonl"]))


def test_a_turn_is_one_step_with_its_ack(tmp_path: Path) -> None:
    end, _stream, events = run_trial("echo", tmp_path)
    assert [event["event_type"] for event in events] == [
        "hooks.header", "agent_step_start", "agent_step_end", "control_ack",
    ]  # fmt: skip
    assert all(event["ext"]["origin"] == "acp_bridge" for event in events)
    assert end.trial_output is not None
    assert end.trial_output["outcome"] == "success"
    assert end.trial_output["answer"] == "hello"
    assert end.result.exit_code == 0


def test_the_turn_count_is_unavailable_and_not_zero(tmp_path: Path) -> None:
    _, stream, events = run_trial("tools", tmp_path)
    assert not isinstance(stream.counts, NotObserved)
    assert isinstance(stream.counts.turn_count, NotObserved)
    assert isinstance(stream.counts.tokens_in, NotObserved)
    assert not any(event["event_type"] == "model_call_end" for event in events)


def test_tool_calls_end_ok_failed_or_unfinished(tmp_path: Path) -> None:
    _, _stream, events = run_trial("tools", tmp_path)
    ends = {event["call_id"]: event for event in events if event["event_type"] == "tool_call_end"}
    assert {key: (event["tool"]["name"], event["outcome"]["status"]) for key, event in ends.items()} == {
        "c1": ("acp:read", "ok"),
        "c2": ("acp:execute", "error"),
        "c3": ("acp:think", "error"),
    }
    assert ends["c3"]["outcome"]["error_type"] == "unfinished"
    assert all(event["step_index"] == 0 for event in ends.values())


def test_a_list_of_prompts_is_one_turn_each(tmp_path: Path) -> None:
    end, stream, _ = run_trial("echo", tmp_path, prompt="{task.turns}", task={"id": "t1", "turns": ["a", "b", "c"]})
    assert not isinstance(stream.counts, NotObserved)
    assert stream.counts.step_count == 3
    assert end.trial_output is not None
    assert end.trial_output["answer"] == "c"


def test_a_spent_step_budget_stops_before_the_next_prompt(tmp_path: Path) -> None:
    end, _stream, events = run_trial(
        "echo", tmp_path, prompt="{task.turns}", task={"id": "t1", "turns": ["a", "b"]}, budgets={"max_steps": 1}
    )
    acks = [event for event in events if event["event_type"] == "control_ack"]
    assert [(ack["action_observed"], ack["action_taken"]) for ack in acks] == [("stop", "stop")]
    assert end.trial_output is not None
    assert end.trial_output["outcome"] == "failure"


def test_one_tool_call_too_many_cancels_the_turn(tmp_path: Path) -> None:
    end, _, _ = run_trial("many_tools", tmp_path, budgets={"max_tool_calls": 2})
    assert end.trial_output is not None
    assert end.trial_output["outcome"] == "failure"
    assert end.trial_output["ext"]["acp"]["stopped"] == "budget: max_tool_calls"


def test_a_stop_in_the_control_file_cancels_the_turn(tmp_path: Path) -> None:
    control = ControlFile()
    transcript = tmp_path / "staging" / "acp_transcript.jsonl"

    def poll() -> None:
        sent = transcript.exists() and b"session/prompt" in transcript.read_bytes()
        if sent and control.history[-1].action == "continue":
            control.write("stop")

    end, _, events = run_trial("wait_for_cancel", tmp_path, control=control, poll=poll)
    assert events[-1]["action_observed"] == "stop"
    assert end.trial_output is not None
    assert end.trial_output["outcome"] == "failure"
    assert end.trial_output["ext"]["acp"]["turns"][0]["stop_reason"] == "cancelled"


def test_a_checkpoint_is_acknowledged_between_two_turns(tmp_path: Path) -> None:
    control = ControlFile()
    path = tmp_path / "staging" / "harness_events.jsonl"

    def poll() -> None:
        ends = path.read_bytes().count(b"agent_step_end") if path.exists() else 0
        if ends == 1 and len(control.history) == 1:
            control.write("checkpoint", "one")
        if path.exists() and b'"action_observed":"checkpoint"' in path.read_bytes() and len(control.history) == 2:
            control.write("continue")

    options = {"prompt": "{task.turns}", "task": {"id": "t1", "turns": ["a", "b"]}}
    _, _, events = run_trial("echo", tmp_path, control=control, poll=poll, **options)
    acks = [event["action_observed"] for event in events if event["event_type"] == "control_ack"]
    assert acks == ["checkpoint", "continue"]


def test_an_interrupted_run_ends_the_trial(tmp_path: Path) -> None:
    began = time.monotonic()

    def poll() -> str | None:
        return "the run was interrupted" if (tmp_path / "staging" / "acp_transcript.jsonl").exists() else None

    end, _, _ = run_trial("never", tmp_path, poll=poll, timeout_s=600.0)
    assert time.monotonic() - began < 300, "it did not wait for its timeout"
    assert end.trial_output is not None
    assert end.trial_output["ext"]["acp"]["stopped"] == "the run was interrupted"


@pytest.mark.parametrize("behaviour", ["ignore_cancel"])
def test_an_agent_that_never_answers_ends_at_its_timeout(behaviour: str, tmp_path: Path) -> None:
    end, _, events = run_trial(behaviour, tmp_path, run=run_until_time_is_up_in_a_turn)
    assert end.result.timed_out
    assert end.trial_output is not None
    assert end.trial_output["outcome"] == "error"
    assert end.trial_output["error"]["error_type"] == "acp:timeout"
    assert end.trial_output["ext"]["acp"]["turns"][0]["cancel_ignored"] is True
    assert [event["event_type"] for event in events][-3:] == ["error", "agent_step_end", "control_ack"]


def test_an_agent_that_heeds_the_cancel_still_timed_out(tmp_path: Path) -> None:
    end, _, _ = run_trial("wait_for_cancel", tmp_path, run=run_until_time_is_up_in_a_turn)
    assert end.trial_output is not None
    assert end.trial_output["outcome"] == "error"
    assert end.trial_output["ext"]["acp"]["turns"][0]["stop_reason"] == "cancelled"


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ("exit_at_once", "acp:exited"),
        ("exits", "acp:exited"),
        ("exits_unended", "acp:exited"),
        ("rpc_error", "acp:rpc_error"),
        ("odd_stop", "acp:bad_answer"),
        ("no_stop", "acp:bad_answer"),
        ("init_error", "acp:auth_required"),
        ("init_list", "acp:bad_answer"),
        ("version_9", "acp:protocol_version"),
        ("no_version", "acp:protocol_version"),
    ],
)
def test_each_way_to_fail_is_a_labelled_error(behaviour: str, kind: str, tmp_path: Path) -> None:
    end, _, events = run_trial(behaviour, tmp_path)
    assert end.trial_output is not None
    assert end.trial_output["outcome"] == "error"
    assert end.trial_output["error"]["error_type"] == kind
    assert any(event["event_type"] == "error" for event in events)


@pytest.mark.parametrize(
    ("behaviour", "answer"),
    [
        ("garbage", "still here"),
        ("long_line", "after the long line"),
        ("strangers", "for you"),
        ("meta", "true"),
        ("late_permission", "done"),
        ("forbidden", "-32601 -32601 -32601 {'action': 'decline'} -32601 -32601"),
        ("oauth", "asked"),
        ("surrogates", "a�b�c"),
        ("kiro", "kiro says hello"),
    ],
)
def test_what_is_odd_is_survived_and_counted(behaviour: str, answer: str, tmp_path: Path) -> None:
    end, _, _ = run_trial(behaviour, tmp_path)
    assert end.trial_output is not None
    assert (end.trial_output["outcome"], end.trial_output["answer"]) == ("success", answer)


def test_a_flood_of_output_ends_the_trial_with_its_label(tmp_path: Path) -> None:
    end, _, _ = run_trial("stdout_flood", tmp_path, timeout_s=60.0)
    assert end.trial_output is not None
    assert end.trial_output["error"]["error_type"] == "acp:flood"
    assert end.trial_output["ext"]["acp"]["transcript"]["full"] is True


def test_what_an_agent_says_before_it_dies_is_kept(tmp_path: Path) -> None:
    end, _, _ = run_trial("exits", tmp_path)
    assert end.trial_output is not None
    assert end.trial_output["answer"] == "half an ans"


@pytest.mark.parametrize(("behaviour", "reason"), [("refuses", "refusal"), ("max_tokens", "max_tokens")])
def test_giving_up_is_a_failure_and_no_error(behaviour: str, reason: str, tmp_path: Path) -> None:
    end, _, _ = run_trial(behaviour, tmp_path)
    assert end.trial_output is not None
    assert end.trial_output["outcome"] == "failure"
    assert end.trial_output["metrics"]["acp_stop_reason"] == reason


@pytest.mark.parametrize(
    ("permissions", "chosen", "status"),
    [("deny_all", "no", "error"), ({"allow_once": ["edit"]}, "yes", "ok"), ({"allow_once": ["read"]}, "no", "error")],
)
def test_the_spec_decides_on_permissions(permissions: Any, chosen: str, status: str, tmp_path: Path) -> None:
    end, _, events = run_trial("asks", tmp_path, permissions=permissions)
    assert end.trial_output is not None
    assert end.trial_output["answer"] == f"permission: {chosen}"
    tool = next(event for event in events if event["event_type"] == "tool_call_end")
    assert tool["outcome"]["status"] == status
    assert tool["ext"]["permission"] == ("allow_once" if chosen == "yes" else "reject_once")
    assert end.trial_output["ext"]["acp"]["permissions"]["first"][0]["call_id"] == "t1"


def test_what_an_agent_forges_in_out_stands_for_nothing(tmp_path: Path) -> None:
    end, _, events = run_trial("fake_files", tmp_path)
    assert end.written["harness_events.jsonl"].parent == tmp_path / "staging"
    assert all("forged" not in event for event in events)
    assert end.trial_output is not None
    assert end.trial_output["answer"] == "forged"


def test_secrets_reach_neither_transcript_nor_hooks(tmp_path: Path) -> None:
    secret = "sk-4242-very-secret"
    run_trial("secrets", tmp_path, env={"MODEL_API_KEY": secret}, redactor=Redactor((), {"MODEL_API_KEY": secret}))
    for path in (tmp_path / "staging").iterdir():
        assert secret.encode() not in path.read_bytes()
    entries = transcript_entries(tmp_path / "staging")
    assert any(entry.get("redacted") for entry in entries)


def test_mode_and_model_are_recorded_as_asked_and_as_confirmed(tmp_path: Path) -> None:
    end, _, _ = run_trial("options", tmp_path, mode_id="code", model="{bindings.model}", bindings={"model": "m2"})
    assert end.trial_output is not None
    settings = end.trial_output["ext"]["acp"]["settings"]
    assert settings["model"] == {
        "asked": "m2", "accepted": True, "confirmed": "m2", "via": "session/set_config_option",
    }  # fmt: skip
    assert settings["mode"]["asked"] == "code"


def test_kiros_own_session_files_become_evidence(tmp_path: Path) -> None:
    end, _, _ = run_trial("kiro_files", tmp_path, dialect="kiro")
    names = sorted(name for name in end.written if name.startswith("kiro_sessions/"))
    assert names == ["kiro_sessions/sess-1.json", "kiro_sessions/sess-1.jsonl"]
    assert all(end.written[name].is_file() for name in names)
