"""Two trials that should be the same, step by step: where they part, with the digests of both sides.

What belongs to the clock or to the run (times, ids, control versions) is left out before comparing. Boundaries are
compared by their request and response, events by what they say happened, outputs by value, files by digest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import orjson

from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import Digest
from labaudit.store.run_folder import TrialFolder

MAX_LISTED = 100
# Events and fields that say when or under whose orders, not what.
_NOT_COMPARED = {"ts", "seq", "ids", "timing", "control_version", "control_seq", "manifest_digest", "ext"}
_CALL = {"kind", "name", "request", "response", "error", "step_index"}
_OWN_FILES = {
    "trial_output.json",
    "harness_manifest.json",
    "harness_events.jsonl",
    "sdk_boundaries.jsonl",
    "trace_manifest.json",
}


@dataclass(frozen=True)
class Divergence:
    """One place where the second trial is another than the first."""

    what: str
    step_index: int | None
    position: int
    expected: str | None
    observed: str | None
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """How much was compared, and every difference that was found (the first ones listed)."""

    compared: int
    total: int
    listed: tuple[Divergence, ...]

    def as_json(self) -> dict[str, Any]:
        """For `divergence.json`."""
        rows = [{key: value for key, value in asdict(item).items() if value is not None} for item in self.listed]
        return {"compared": self.compared, "total": self.total, "divergences": rows}


def compare_trials(
    first: TrialFolder, second: TrialFolder, outputs: tuple[Mapping[str, str], Mapping[str, str]], *,
    before_step: int | None = None,
) -> Comparison:  # fmt: skip
    """Compares the evidence of both; with `before_step` only what comes before that step (the prefix of a fork)."""
    found: list[Divergence] = []
    compared = 0
    sources = [_boundaries(first, second, before_step), _events(first, second, before_step)]
    if before_step is None:
        # the input last among the evidence of the way: where an input made a call differ, the call is what is met first
        sources += [_input(first, second), _output(first, second), _files(*outputs)]
    for source in sources:
        for item in source:
            compared += 1
            if item is not None:
                found.append(item)
    return Comparison(compared, len(found), tuple(found[:MAX_LISTED]))


def _boundaries(first: TrialFolder, second: TrialFolder, before: int | None) -> Iterator[Divergence | None]:
    if not first.boundaries.is_file():
        return
    pairs = zip_longest(_calls(first.boundaries, before), _calls(second.boundaries, before))
    for position, (expected, observed) in enumerate(pairs):
        yield _compare("boundary", position, expected, observed)


def _calls(path: Path, before: int | None) -> Iterator[dict[str, Any]]:
    for line in _lines(path):
        if line.get("kind") != "end" and not _is_later(line, before):
            yield {key: value for key, value in line.items() if key in _CALL}


def _events(first: TrialFolder, second: TrialFolder, before: int | None) -> Iterator[Divergence | None]:
    if not first.harness_events.is_file():
        return
    pairs = zip_longest(_told(first.harness_events, before), _told(second.harness_events, before))
    for position, (expected, observed) in enumerate(pairs):
        yield _compare("event", position, expected, observed)


def _told(path: Path, before: int | None) -> Iterator[dict[str, Any]]:
    for event in _lines(path):
        if event.get("event_type") != "control_ack" and not _is_later(event, before):
            yield {key: value for key, value in event.items() if key not in _NOT_COMPARED}


def _is_later(line: Mapping[str, Any], before: int | None) -> bool:
    step = line.get("step_index")
    return before is not None and isinstance(step, int) and step >= before


def _compare(
    what: str, position: int, expected: dict[str, Any] | None, observed: dict[str, Any] | None
) -> Divergence | None:
    if expected == observed:
        return None
    step = (expected or observed or {}).get("step_index")
    name = _name(expected or observed or {})
    if observed is None:
        sentence = f"{what} {position} ({name}) did not happen again"
    elif expected is None:
        sentence = f"{what} {position} ({name}) happened only now"
    else:
        keys = sorted(key for key in {*expected, *observed} if expected.get(key) != observed.get(key))
        sentence = f"{what} {position} ({name}) differs in {', '.join(keys)}"
    return Divergence(what, step, position, _digest(expected), _digest(observed), sentence)


def _name(line: Mapping[str, Any]) -> str:
    return str(line.get("event_type") or f"{line.get('kind')} {line.get('name')}")


def _input(first: TrialFolder, second: TrialFolder) -> Iterator[Divergence | None]:
    """What both were given. A replay is fed from the plan and its dataset: a stored input that says another thing than
    they do was not what the parent got, or they have changed."""
    expected, observed = _given(first.trial_input), _given(second.trial_input)
    for position, key in enumerate(sorted({*expected, *observed})):
        if expected.get(key) == observed.get(key):
            yield None
            continue
        sentence = f"{key} of the input differs"
        yield Divergence("input", None, position, _digest(expected.get(key)), _digest(observed.get(key)), sentence)


def _given(path: Path) -> dict[str, Any]:
    """The parts of an input that are the same wherever a trial runs, its task field by field."""
    value = _document(path)
    runtime = {key: part for key, part in value.pop("runtime", {}).items() if key not in {"paths", "control_plane"}}
    task = value.pop("task", {})
    fields = {f"task.{key}": part for key, part in task.items()} if isinstance(task, dict) else {"task": task}
    return {key: part for key, part in (value | runtime | fields).items() if key not in {"ids", "ext"}}


def _output(first: TrialFolder, second: TrialFolder) -> Iterator[Divergence | None]:
    expected, observed = _document(first.trial_output), _document(second.trial_output)
    keys = sorted({*expected, *observed} - {"ids", "schema_version"})
    for position, key in enumerate(keys):
        if expected.get(key) == observed.get(key):
            yield None
            continue
        sentence = f"{key} of the output differs"
        yield Divergence("output", None, position, _digest(expected.get(key)), _digest(observed.get(key)), sentence)


def _files(expected: Mapping[str, str], observed: Mapping[str, str]) -> Iterator[Divergence | None]:
    for position, path in enumerate(sorted({*expected, *observed})):
        if path in _OWN_FILES:
            continue
        if expected.get(path) == observed.get(path):
            yield None
            continue
        sentence = f"output file {path} differs"
        yield Divergence("file", None, position, expected.get(path), observed.get(path), sentence)


def output_files(trial: TrialFolder) -> dict[str, str]:
    """Path to artifact reference of what a trial left in /out, from its list of artifacts."""
    found: dict[str, str] = {}
    for line in _lines(trial.artifacts):
        role = str(line.get("role", ""))
        if role.startswith("out:"):
            found[role.removeprefix("out:")] = str(line["ref"])
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_file():
        with path.open("rb") as stream:
            for line in stream:
                value = orjson.loads(line)
                if isinstance(value, dict):
                    yield value


def _document(path: Path) -> dict[str, Any]:
    value = orjson.loads(path.read_bytes()) if path.is_file() else {}
    return value if isinstance(value, dict) else {}


def _digest(value: object) -> str | None:
    return None if value is None else str(Digest.of(canonical_bytes(value)))
