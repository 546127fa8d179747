"""Two sequences of what agents did to the places where they part.

A step is reduced to its signature: which models and tools were called, in order, and how each call ended. Sequences are
aligned by their longest matching blocks, so that one inserted step does not make all later ones look different.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from labaudit.analysis.explain.stream import Event, Stream

Signature = tuple[str, ...]
# Beyond this the alignment goes by position: matching blocks of very long sequences costs more than it tells.
MAX_ALIGNED = 2000
MAX_SHOWN = 50
_CALLS = ("model_call_end", "tool_call_end", "error")


@dataclass(frozen=True)
class Unit:
    """One step or one turn: its index and its signature."""

    index: int
    signature: Signature


@dataclass(frozen=True)
class Aligned:
    """Where two sequences agree and part; `changes` are the first ones, `changes_total` counts all."""

    mode: str
    baseline_units: int
    variant_units: int
    matching: int
    first_divergence: dict[str, object] | None
    changes: tuple[dict[str, object], ...]
    changes_total: int

    def as_json(self) -> dict[str, object]:
        """For a line of `diffs/<variant>.jsonl`."""
        return {
            "mode": self.mode,
            "baseline_units": self.baseline_units,
            "variant_units": self.variant_units,
            "matching": self.matching,
            "first_divergence": self.first_divergence,
            "changes": list(self.changes),
            "changes_total": self.changes_total,
        }


def align(baseline: Stream, variant: Stream) -> Aligned | None:
    """By step where both streams have step events, else by turn, else None: outputs are all there is to compare."""
    if not (baseline.usable and variant.usable):
        return None
    first, second = steps_of(baseline.events), steps_of(variant.events)
    if first and second:
        return _aligned("step", first, second)
    first, second = turns_of(baseline.events), turns_of(variant.events)
    return _aligned("turn", first, second) if first or second else None


def align_spans(baseline: Stream, variant: Stream) -> Aligned | None:
    """By turn, one span each in order of start, for trials that left traces and no hook events."""
    if not (baseline.usable and variant.usable) or not (baseline.events or variant.events):
        return None
    return _aligned("turn", *(_span_units(stream) for stream in (baseline, variant)))


def _span_units(traces: Stream) -> list[Unit]:
    return [
        Unit(number, (f"span:{span['name']}:{'error' if span['failed'] else 'ok'}",))
        for number, span in enumerate(traces.events)
    ]


def steps_of(events: Sequence[Event]) -> list[Unit]:
    """One unit per step that has a start event; causal events belong to the step they name."""
    signatures: dict[int, list[str]] = {}
    for event in events:
        step = event.get("step_index")
        if not isinstance(step, int):
            continue
        if event.get("event_type") == "agent_step_start":
            signatures.setdefault(step, [])
        elif event.get("event_type") in _CALLS and step in signatures:
            signatures[step].append(call_signature(event))
    return [Unit(step, tuple(calls)) for step, calls in sorted(signatures.items())]


def turns_of(events: Sequence[Event]) -> list[Unit]:
    """One unit per model call, with the tool calls and errors that follow it."""
    units: list[list[str]] = []
    for event in events:
        if event.get("event_type") == "model_call_end":
            units.append([call_signature(event)])
        elif event.get("event_type") in _CALLS and units:
            units[-1].append(call_signature(event))
    return [Unit(number, tuple(calls)) for number, calls in enumerate(units)]


def call_signature(event: Event) -> str:
    """`tool:search:ok`, `model:gpt:error`, `error:Timeout`."""
    kind = str(event.get("event_type"))
    if kind == "error":
        return f"error:{event.get('error_type') or 'unnamed'}"
    named, key = ("tool", "name") if kind == "tool_call_end" else ("model", "identity")
    thing, outcome = event.get(named), event.get("outcome")
    name = thing.get(key) if isinstance(thing, dict) else None
    status = outcome.get("status") if isinstance(outcome, dict) else None
    return f"{named}:{name or 'unnamed'}:{status or 'unknown'}"


def _aligned(mode: str, baseline: list[Unit], variant: list[Unit]) -> Aligned:
    first, second = [unit.signature for unit in baseline], [unit.signature for unit in variant]
    changes: list[dict[str, object]] = []
    matching = 0
    for tag, a0, a1, b0, b1 in _opcodes(first, second):
        if tag == "equal":
            matching += a1 - a0
        else:
            changes.append(_change(tag, baseline[a0:a1], variant[b0:b1]))
    return Aligned(
        mode=mode,
        baseline_units=len(baseline),
        variant_units=len(variant),
        matching=matching,
        first_divergence=changes[0] if changes else None,
        changes=tuple(changes[:MAX_SHOWN]),
        changes_total=len(changes),
    )


def _opcodes(first: list[Signature], second: list[Signature]) -> list[tuple[str, int, int, int, int]]:
    if max(len(first), len(second)) <= MAX_ALIGNED:
        return list(SequenceMatcher(None, first, second, autojunk=False).get_opcodes())
    shared = min(len(first), len(second))
    codes = [("equal" if first[i] == second[i] else "replace", i, i + 1, i, i + 1) for i in range(shared)]
    if len(first) != len(second):
        codes.append(("delete" if len(first) > shared else "insert", shared, len(first), shared, len(second)))
    return codes


def _change(tag: str, baseline: list[Unit], variant: list[Unit]) -> dict[str, object]:
    names = {"replace": "changed", "delete": "only_in_baseline", "insert": "only_in_variant"}
    return {
        "kind": names[tag],
        "baseline": [{"index": unit.index, "calls": list(unit.signature)} for unit in baseline[:MAX_SHOWN]],
        "variant": [{"index": unit.index, "calls": list(unit.signature)} for unit in variant[:MAX_SHOWN]],
    }
