"""harness_events.jsonl to a judged hook stream: every line validated, every rule checked, everything counted once.

The file is read line by line and nothing of it is kept, so a million events need no more memory than ten. A stream that
breaks a rule is kept as it is and marked invalid; nothing is counted from it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson

from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput, Contradiction
from labaudit.evidence import hook_rules
from labaudit.evidence.harness_manifest import HarnessManifest
from labaudit.evidence.hook_rules import ControlWrite, Expected, StreamState, Weight
from labaudit.evidence.observation import HookFinding, NotObserved
from labaudit.records.ids import Ids
from labaudit.records.schema_registry import explain, fast_validator
from labaudit.store import atomic

MAX_LINE = 1 << 20
MAX_FINDINGS = 100
# Sentences of the explaining validator are slow to make; a stream of garbage gets this many, then a plain one.
MAX_EXPLAINED = 20
_LONG_NUMBER = re.compile(rb"\d{16}")
_DEEP = 128
_BRIDGED = "the bridge that wrote this stream cannot see model calls"
Verdict = Literal["valid", "degraded", "invalid", "unreadable"]


@dataclass(frozen=True)
class HookCounts:
    """What a valid stream shows. `turn_count` is the number of model calls that ended."""

    turn_count: int | NotObserved
    step_count: int
    tool_calls: int
    errors: int
    tokens_in: int | NotObserved
    tokens_out: int | NotObserved
    causal_events: int
    causal_without_step: int
    acks: int
    acks_with_action_taken: int
    checkpoints_acked: int
    stopped: bool
    payload_refs: int
    last_step_index: int | None
    header: bool = False
    claimed_budgets: Mapping[str, int] = field(default_factory=dict)
    """What the harness itself said it had spent, at the last step end that says so."""


@dataclass(frozen=True)
class HookStream:
    """A hook stream with its verdict. `counts` is NotObserved unless the stream is valid."""

    verdict: Verdict
    strict: bool
    events: int
    size: int
    sha256: str
    findings: tuple[HookFinding, ...]
    findings_total: int
    findings_by_rule: Mapping[str, int]
    counts: HookCounts | NotObserved
    acks_missing: int
    control_checked: bool
    """False when nobody could say what the runner wrote, so that H8 was not checked."""

    @property
    def valid(self) -> bool:
        """True when no rule that invalidates was broken; a degraded stream still counts."""
        return self.verdict in ("valid", "degraded")

    def require_valid(self, where: str = "harness_events.jsonl") -> None:
        """Contradiction naming the first broken rule, for callers that cannot go on without the stream."""
        if not self.valid:
            first = next(item for item in self.findings if item.weight != "degrades")
            place = f"{where}:{first.line}" if first.line else where
            raise Contradiction(f"{first.sentence} [{first.rule} {first.name}]", where=place)


class HookCollector:
    """The seed's interface; one collector may read many streams."""

    def collect(
        self,
        path: Path,
        manifest: HarnessManifest | None,
        ids: Ids | Mapping[str, object] | None,
        control_history: Iterable[ControlWrite] | None = None,
        *,
        strict: bool = False,
        cut_short: bool = False,
        on_payload_ref: Callable[[str], None] | None = None,
    ) -> HookStream:
        """Judges the stream at `path`. BadInput only when the file itself cannot be read."""
        expected = Expected(
            manifest=manifest,
            ids=ids.to_json() if isinstance(ids, Ids) else ids,
            control=None if control_history is None else {item.control_version: item for item in control_history},
            cut_short=cut_short,
        )
        try:
            with path.open("rb") as stream:
                return judge(stream, expected, strict=strict, on_payload_ref=on_payload_ref)
        except FileNotFoundError as error:
            raise BadInput("there is no such file", where=str(path)) from error
        except OSError as error:
            raise atomic.explain(error, path) from error


def judge(
    stream: BinaryIO,
    expected: Expected,
    *,
    strict: bool = False,
    on_payload_ref: Callable[[str], None] | None = None,
) -> HookStream:
    """The same for bytes from anywhere."""
    return _Reading(expected, strict, on_payload_ref).run(stream)


class _Reading:
    """One pass over one stream."""

    def __init__(self, expected: Expected, strict: bool, on_payload_ref: Callable[[str], None] | None) -> None:
        self._expected = expected
        self._strict = strict
        self._on_payload_ref = on_payload_ref
        self._state = StreamState()
        self._findings: list[HookFinding] = []
        self._by_rule: Counter[str] = Counter()
        self._by_weight: Counter[str] = Counter()
        self._tally: Counter[str] = Counter()
        self._budgets: dict[str, int] = {}
        self._explained = 0

    def run(self, stream: BinaryIO) -> HookStream:
        meter = _Meter()
        is_valid = fast_validator("hook_events_v1").is_valid
        for number, line, problem in _lines(stream, meter):
            self._state.line = number
            if problem:
                self._add(number, "F1", "every_line_is_json", "unreadable", problem)
                continue
            event = self._parse(number, line)
            if is_valid(event):
                self._take(number, event)
            elif event is not _UNREADABLE:
                self._explain(number, event)
        for end in hook_rules.at_the_end(self._state, self._expected):
            self._add(end.line, end.rule.id, end.rule.name, end.weight, end.sentence)
        beyond = self._state.causal_without_step_total - len(self._state.causal_without_step)
        if beyond and self._state.steps:
            self._by_rule["H6"] += beyond
        return self._result(meter)

    def _parse(self, number: int, line: bytes) -> Any:
        try:
            value = orjson.loads(line)
            if _reads_the_same_everywhere(line, value):
                return value
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            pass
        try:
            return parse_json(line)
        except BadInput as error:
            self._add(number, "F1", "every_line_is_json", "unreadable", error.what)
            return _UNREADABLE

    def _explain(self, number: int, event: object) -> None:
        sentence = "breaks hook_events_v1"
        if self._explained < MAX_EXPLAINED:
            self._explained += 1
            found = explain("hook_events_v1", event)
            sentence = f"breaks hook_events_v1 at {found[0].path}: {found[0].message}" if found else sentence
        self._add(number, "F2", "every_line_keeps_to_its_schema", "invalidates", sentence)

    def _take(self, number: int, event: Mapping[str, Any]) -> None:
        state, expected = self._state, self._expected
        for rule in hook_rules.RULES[event["event_type"]]:
            sentence = rule.check(state, event, expected)
            if sentence is not None:
                self._add(number, rule.id, rule.name, rule.weight, sentence)
        hook_rules.advance(state, event, expected)
        self._count(event)

    def _count(self, event: Mapping[str, Any]) -> None:
        tally, kind = self._tally, event["event_type"]
        tally[kind] += 1
        if kind == hook_rules.MODEL_CALL:
            usage = event.get("usage") or {}
            for name in ("tokens_in", "tokens_out"):
                if name in usage:
                    tally[name] += usage[name]
                    tally[name + ":reported"] += 1
        elif kind == hook_rules.CONTROL_ACK:
            tally["taken"] += "action_taken" in event
            tally["checkpoints"] += event["action_observed"] == "checkpoint"
        elif kind == hook_rules.STEP_END and event.get("budgets"):
            self._budgets = event["budgets"]
        if "payload_ref" in event:
            tally["payload_refs"] += 1
            if self._on_payload_ref is not None:
                self._on_payload_ref(event["payload_ref"])
        # A bridge that speaks for an agent sees turns, not the model calls behind them.
        if "ext" in event and event["ext"].get("origin") == "acp_bridge":
            tally["bridged"] += 1

    def _add(self, line: int, rule: str, name: str, weight: Weight, sentence: str) -> None:
        self._by_rule[rule] += 1
        self._by_weight[weight] += 1
        if len(self._findings) < MAX_FINDINGS:
            self._findings.append(HookFinding(line, rule, name, weight, sentence))

    def _result(self, meter: _Meter) -> HookStream:
        verdict: Verdict = "valid"
        if self._by_weight["unreadable"]:
            verdict = "unreadable"
        elif self._by_weight["invalidates"]:
            verdict = "invalid"
        elif self._by_weight["degrades"]:
            verdict = "degraded"
        state = self._state
        counts: HookCounts | NotObserved = NotObserved("the hook stream is invalid")
        if verdict in ("valid", "degraded"):
            counts = self._counts()
        return HookStream(
            verdict=verdict,
            strict=self._strict,
            events=state.events,
            size=meter.size,
            sha256=meter.hasher.hexdigest(),
            findings=tuple(sorted(self._findings, key=lambda item: item.line or 1 << 60)),
            findings_total=sum(self._by_rule.values()),
            findings_by_rule=dict(sorted(self._by_rule.items())),
            counts=counts,
            acks_missing=state.acks_missing + (state.unacked_step is not None),
            control_checked=self._expected.control is not None,
        )

    def _counts(self) -> HookCounts:
        tally, state = self._tally, self._state
        turns: int | NotObserved = tally[hook_rules.MODEL_CALL]
        if tally["bridged"] and not turns:
            turns = NotObserved(_BRIDGED)
        return HookCounts(
            turn_count=turns,
            step_count=state.steps,
            tool_calls=tally[hook_rules.TOOL_CALL],
            errors=tally[hook_rules.ERROR],
            tokens_in=self._tokens("tokens_in"),
            tokens_out=self._tokens("tokens_out"),
            causal_events=sum(tally[kind] for kind in hook_rules.CAUSAL),
            causal_without_step=state.causal_without_step_total if state.steps else 0,
            acks=tally[hook_rules.CONTROL_ACK],
            acks_with_action_taken=tally["taken"],
            checkpoints_acked=tally["checkpoints"],
            stopped=state.stopped,
            payload_refs=tally["payload_refs"],
            last_step_index=state.last_step,
            header=state.header_seen,
            claimed_budgets=dict(self._budgets),
        )

    def _tokens(self, name: str) -> int | NotObserved:
        calls, reported = self._tally[hook_rules.MODEL_CALL], self._tally[name + ":reported"]
        if reported < calls:
            return NotObserved(f"{calls - reported} of {calls} model calls report no {name}")
        if self._tally["bridged"] and not calls:
            return NotObserved(_BRIDGED)
        return self._tally[name]


def _reads_the_same_everywhere(line: bytes, value: object) -> bool:
    """True when the fast reader's value is surely the strict reader's; False sends the line to the strict one.

    Without a backslash a line has as many quotes as its value written anew, unless a duplicate key was dropped. A long
    number may be no double (the fast reader refuses infinities itself), and depth is bounded.
    """
    if b"\\" in line or line.count(b"{") + line.count(b"[") > _DEEP:
        return False
    if _LONG_NUMBER.search(line) or not isinstance(value, dict):
        return False
    return orjson.dumps(value).count(b'"') == line.count(b'"')


# What `_parse` answers when there is nothing to judge: one particular text, which is no valid event.
_UNREADABLE: Any = "unreadable line"


class _Meter:
    """Length and hash of all that went by."""

    def __init__(self) -> None:
        self.size = 0
        self.hasher = hashlib.sha256()

    def __call__(self, data: bytes) -> None:
        self.size += len(data)
        self.hasher.update(data)


def _lines(stream: BinaryIO, seen: _Meter) -> Iterator[tuple[int, bytes, str]]:
    """(number, line, problem) for each line. A last line without newline is fine when it is whole JSON."""
    number = 0
    while raw := stream.readline(MAX_LINE + 1):
        number += 1
        seen(raw)
        if len(raw) > MAX_LINE:
            length = len(raw)
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(MAX_LINE)
                seen(raw)
                length += len(raw)
            yield number, b"", f"the line has {length} bytes, more than {MAX_LINE}"
        elif not raw.strip():
            yield number, raw, "the line is empty"
        else:
            yield number, raw, ""
