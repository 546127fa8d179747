"""Streams from a harness that is broken or means harm: every one gets a verdict, in bounded memory, without a crash."""

from __future__ import annotations

import json
import os
import random
import tracemalloc
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput
from labaudit.evidence.hook_collector import (
    MAX_FINDINGS,
    MAX_LINE,
    HookCollector,
    HookStream,
    _reads_the_same_everywhere,
)
from labaudit.evidence.inside_out import open_regular, relative_inside
from labaudit.evidence.observation import NotObserved

CASE = Path(__file__).parents[2] / "conformance" / "hooks" / "two_steps"
GOOD = (CASE / "harness_events.jsonl").read_bytes()


def judge(tmp_path: Path, data: bytes) -> HookStream:
    path = tmp_path / "harness_events.jsonl"
    path.write_bytes(data)
    return HookCollector().collect(path, None, json.loads((CASE / "trial_input.json").read_bytes())["ids"])


def test_no_mutation_of_a_stream_raises(tmp_path: Path) -> None:
    generator = random.Random(20261118)
    verdicts = set()
    for _ in range(400):
        data = bytearray(GOOD)
        for _ in range(generator.randint(1, 6)):
            place = generator.randrange(len(data))
            kind = generator.randrange(4)
            if kind == 0:
                data[place] = generator.randrange(256)
            elif kind == 1:
                del data[place : place + generator.randint(1, 40)]
            elif kind == 2:
                data[place:place] = data[: generator.randint(1, 200)]
            else:
                data[place:place] = bytes(generator.choices(b'{}[]",:0123456789\n\\u', k=5))
        verdicts.add(judge(tmp_path, bytes(data)).verdict)
    assert verdicts == {"invalid", "unreadable"}


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 5000,
        b"\xff\xfe" * 100 + b"\n",
        b"[" * 100_000 + b"\n",
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"\n",
        b"x" * (3 * MAX_LINE) + b"\n" + GOOD,
        b"1e999\n",
        b'"text"\n',
        b"null\n",
        b'{"event_type":"agent_step_start","seq":123456789012345678901234567890}\n',
        b'{"event_type":"\\ud800"}\n',
        b"\xef\xbb\xbf" + GOOD,
    ],
)
def test_what_is_no_stream_is_unreadable_or_invalid(tmp_path: Path, data: bytes) -> None:
    stream = judge(tmp_path, data)
    assert not stream.valid
    assert isinstance(stream.counts, NotObserved)
    assert stream.size == len(data)


def test_a_stream_of_garbage_costs_no_memory_and_keeps_the_first_findings(tmp_path: Path) -> None:
    path = tmp_path / "garbage.jsonl"
    path.write_bytes(b'{"event_type":"nonsense"}\n' * 50_000)
    tracemalloc.start()
    stream = HookCollector().collect(path, None, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert stream.findings_total == 50_000 + 1
    assert len(stream.findings) == MAX_FINDINGS
    assert stream.findings[0].line == 1
    assert peak < 30 << 20


def test_a_number_that_two_readers_read_differently_is_unreadable(tmp_path: Path) -> None:
    data = GOOD.replace(b'"seq":0,', b'"seq":9007199254740993,')
    assert judge(tmp_path, data).verdict == "unreadable"


@pytest.mark.parametrize("declared", ["/etc/passwd", "..", "a/../../b", "", "/", "/out/", "/outside/x", "a\0b"])
def test_a_path_that_leaves_the_out_folder_is_refused(declared: str) -> None:
    with pytest.raises(BadInput):
        relative_inside(declared)


def test_links_fifos_and_folders_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    (tmp_path / "linked_folder").symlink_to("/etc")
    for name in ("fifo", "link", "folder", "linked_folder/passwd"):
        with pytest.raises(BadInput):
            open_regular(tmp_path, name)
    assert open_regular(tmp_path, "none") is None
    assert open_regular(tmp_path, "folder/none") is None


def test_a_stream_by_a_bridge_that_cannot_see_model_calls_counts_no_turns(trial: Any) -> None:
    trial.manifest()
    events = trial.step(0)
    trial.stream([event | {"ext": {"origin": "acp_bridge"}} for event in events])
    observed = trial.finish()[1]
    assert observed.hooks.valid
    assert isinstance(observed.hooks.turn_count, NotObserved)
    assert isinstance(observed.hooks.tokens_in, NotObserved)


def test_tokens_are_unknown_when_one_call_does_not_report_them(trial: Any) -> None:
    trial.manifest()
    call = {"event_type": "model_call_end", "call_id": "m", "outcome": {"status": "ok"}}
    trial.stream(trial.step(0, call | {"usage": {"tokens_in": 5, "tokens_out": 1}}, call | {"usage": {"tokens_in": 5}}))
    observed = trial.finish()[1]
    assert observed.hooks.tokens_in == 10
    assert observed.hooks.tokens_out == NotObserved("1 of 2 model calls report no tokens_out")


LINES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(LINES, st.data())
@settings(max_examples=300, deadline=None)
def test_the_fast_reader_is_trusted_only_where_the_strict_reader_agrees(value: Any, data: st.DataObject) -> None:
    ascii_only, spaced = data.draw(st.booleans()), data.draw(st.booleans())
    text = json.dumps(value, ensure_ascii=ascii_only, separators=(", ", ": ") if spaced else (",", ":"))
    if data.draw(st.booleans()):
        text = f'{{"a": {text}, "{data.draw(st.sampled_from("ab"))}": {text}}}'
    line = text.encode("utf-8", "surrogatepass")
    try:
        fast = orjson.loads(line)
        trusted = _reads_the_same_everywhere(line, fast)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return
    if trusted:
        assert parse_json(line) == fast


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":1,"a":1}', b'{"a": 1, "b": {"c": "x", "c": "y"}}', b'[{"k":1,"k":2}]', b"9007199254740993", b"1e999",
        b'{"a":"\\u0022","a":""}', b'"\\ud800"', b"[" * 200 + b"]" * 200,
    ],
)  # fmt: skip
def test_no_line_that_two_readers_read_differently_is_trusted(line: bytes) -> None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return
    assert not _reads_the_same_everywhere(line, value)
