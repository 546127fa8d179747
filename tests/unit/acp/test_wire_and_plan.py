"""The parts without input or output: framing, fitting, templates, policies, MCP servers, plain text."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labaudit.core.canonical import canonical_bytes
from labaudit.errors import BadInput
from labaudit.harnesses.acp.client import permissions
from labaudit.harnesses.acp.client.permissions import Policy
from labaudit.harnesses.acp.trial.mcp import mcp_servers
from labaudit.harnesses.acp.trial.plan import agent_environment, parse_policy, plan_conversation
from labaudit.harnesses.acp.trial.prompts import render, render_prompts
from labaudit.harnesses.acp.wire import extensions, jsonrpc, plain_text, updates
from labaudit.harnesses.acp.wire.framing import LineFramer
from labaudit.harnesses.acp.wire.text import fit_value
from labaudit.records.resolved_runtime import ResolvedMcpServer
from tests.unit.acp.talk import resolved, trial_input

TASK = {"prompt": "Greet Ada", "n": 3, "deep": {"x": ["a"]}, "turns": ["one", "two"]}
VALUES = {"task": TASK, "bindings": {"m": "k"}}


@given(st.binary(max_size=400), st.lists(st.integers(1, 50), max_size=30))
def test_lines_do_not_depend_on_how_the_chunks_fall(data: bytes, sizes: list[int]) -> None:
    whole, parts = LineFramer(), LineFramer()
    wanted = [*whole.feed(data), *whole.close()]
    found, rest = [], data
    for size in sizes:
        found += parts.feed(rest[:size])
        rest = rest[size:]
    found += [*parts.feed(rest), *parts.close()]
    assert found == wanted


@given(st.lists(st.integers(0, 300), min_size=1, max_size=5))
def test_a_long_line_is_its_head_its_size_and_its_hash(sizes: list[int]) -> None:
    framer = LineFramer(max_line=100, keep=10)
    lines = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    frames = framer.feed(b"".join(line + b"\n" for line in lines))
    for line, frame in zip([line for line in lines if line], frames, strict=True):
        assert frame.size == len(line)
        assert frame.cut == (len(line) > 100)
        assert frame.data == (line[:10] if frame.cut else line)
        assert frame.sha256 == (hashlib.sha256(line).hexdigest() if frame.cut else "")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_whatever_an_agent_says_can_be_made_a_record(value: Any) -> None:
    canonical_bytes(fit_value(value))


NAMES = (
    "agent_message_chunk", "AgentMessageChunk", "tool_call", "ToolCallUpdate", "plan", "available_commands_update",
    "current_mode_update", "config_option_update", "usage_update", "TurnEnd", "made_up",
)  # fmt: skip
KEYS = (
    "content", "toolCallId", "id", "title", "kind", "status", "entries", "availableCommands", "currentModeId", "name",
    "configOptions", "used", "size", "cost", "commands", "progress", "serverName", "tools", "authUrl", "reason",
)  # fmt: skip
METHODS = ("commands/available", "compaction/status", "clear/status", "mcp/oauth_request", "session/terminated", "x")
FIELDS = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6)


@given(st.sampled_from(NAMES), FIELDS, JSON)
def test_no_update_of_an_agent_can_break_its_reader(name: str, fields: dict[str, Any], session: Any) -> None:
    for key in ("sessionUpdate", "type"):
        found, _ = updates.read_update({"sessionId": session, "update": {**fields, key: name}})
        assert found is None or found == session
    updates.read_update({"update": fields})


@given(st.sampled_from(METHODS), FIELDS, st.lists(JSON, max_size=4))
def test_no_extension_and_no_question_can_break_its_reader(
    method: str, fields: dict[str, Any], items: list[Any]
) -> None:
    extensions.read_extension("_kiro.dev/" + method, {**fields, "commands": items, "tools": items})
    _, _, options = permissions.read_ask({"sessionId": "s", "toolCall": fields, "options": items})
    assert all(option.kind in permissions.OPTION_KINDS for option in options)
    decision = permissions.decide(Policy(frozenset({"read"})), frozenset({"read"}), options)
    assert decision.option is None or decision.option.kind != "allow_always"


@given(st.binary(max_size=300))
def test_no_line_can_break_its_reader(line: bytes) -> None:
    jsonrpc.read_message(line)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{task.prompt}", "Greet Ada"),
        ("Say {task.n} times: {task.prompt} with {bindings.m}", "Say 3 times: Greet Ada with k"),
        ("{task.deep}", '{"x": ["a"]}'),
        ("literal {{braces}} stay", "literal {braces} stay"),
    ],
)
def test_templates_are_filled_from_task_and_bindings(template: str, text: str) -> None:
    assert render(template, VALUES, where="x") == text


@pytest.mark.parametrize(
    "template", ["{task.nothing}", "{env.HOME}", "{task}", "{}", "{task.prompt.x}", "{task.__class__}"]
)
def test_a_template_that_names_nothing_is_refused_by_name(template: str) -> None:
    with pytest.raises(BadInput) as caught:
        render(template, VALUES, where="runtime.harness.prompt")
    assert caught.value.where == "runtime.harness.prompt"
    assert caught.value.hint


def test_prompts_are_one_or_a_list() -> None:
    assert render_prompts(None, VALUES) == ("Greet Ada",)
    assert render_prompts("{task.turns}", VALUES) == ("one", "two")
    assert render_prompts("First {task.turns}", VALUES) == ('First ["one", "two"]',)
    for bad in ([], ["a", 1], ["a", ""]):
        with pytest.raises(BadInput, match="a list"):
            render_prompts("{task.turns}", {"task": {"turns": bad}, "bindings": {}})


def test_a_plan_says_what_cannot_be_enforced(tmp_path: Path) -> None:
    spec = resolved(tmp_path, budgets={"max_total_tokens": 5, "max_steps": 2}, permissions={"allow_once": ["read"]})
    plan = plan_conversation(spec.runtime.harness, spec.runtime.budgets, trial_input({"prompt": "x"}), "/workspace")
    assert plan.notes == ("max_total_tokens cannot be enforced: ACP shows no token counts",)
    assert plan.policy == Policy(frozenset({"read"}))
    assert (plan.max_steps, plan.max_tool_calls, plan.cwd) == (2, None, "/workspace")


def test_policies_are_written_as_words() -> None:
    assert parse_policy("deny_all") == Policy()
    assert parse_policy("read, search") == Policy(frozenset({"read", "search"}))
    assert parse_policy(Policy(frozenset({"edit"})).name) == Policy(frozenset({"edit"}))
    for bad in ("everything", "", "read,always"):
        with pytest.raises(BadInput, match="no kind of tool call"):
            parse_policy(bad)


def test_mcp_servers_take_the_shape_that_agents_expect() -> None:
    servers = [
        ResolvedMcpServer.from_json({"name": "files", "command": "mcp", "args": ["x"], "env": {"B": "2", "A": "1"}}),
        ResolvedMcpServer.from_json({"name": "web", "type": "sse", "url": "http://127.0.0.1:1", "headers": {"h": "v"}}),
    ]
    assert mcp_servers(servers) == [
        {
            "name": "files", "command": "mcp", "args": ["x"],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        },
        {"type": "sse", "name": "web", "url": "http://127.0.0.1:1", "headers": [{"name": "h", "value": "v"}]},
    ]  # fmt: skip
    assert mcp_servers(None) == []


def test_kiros_log_is_asked_for_where_it_is_collected(tmp_path: Path) -> None:
    assert agent_environment(resolved(tmp_path, dialect="v1").runtime.harness) == {}
    env = agent_environment(resolved(tmp_path, dialect="kiro").runtime.harness)
    assert env == {"KIRO_LOG_LEVEL": "debug", "KIRO_CHAT_LOG_FILE": "/out/kiro-chat.log"}


def test_terminal_control_is_taken_out_of_plain_text() -> None:
    raw = "\x1b[1;32mhel\x08lo\x1b[0m\rreal line\x07\nkiro> "
    text = plain_text.plain(raw)
    assert "\x1b" not in text
    assert plain_text.ends_in_prompt(text)
    assert plain_text.without_prompt(text) == "real line"
    assert json.dumps(text)
