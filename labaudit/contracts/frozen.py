"""What is frozen of the contracts: name, version and the digest of what the contract means, kept beside each other.

A digest is computed from the contract itself: schemas without their descriptions, the rule book, the records that the
scenario executor gives for fixed scenarios, the order of the pipeline. When a contract changes, its digest does, and a
test demands a new version (CONTRIBUTING.md, "Changing a contract").
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from labaudit.contracts.a2a.convert import EVENT_TYPES, FALLBACK
from labaudit.contracts.a2a.handoff import observe_handoff
from labaudit.contracts.a2a.meaning import CONTRACT, HANDOFF_MEANINGS
from labaudit.contracts.rules.book import BOOK
from labaudit.contracts.scenarios.clocks import WoundClock
from labaudit.contracts.scenarios.executor import Provenance, StepCall, StepFailed, StepResult, execute
from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import Digest
from labaudit.core.strict_json import parse_json
from labaudit.resources import read_schema

PIPELINE_ORDER = (
    "resolve",
    "schedule",
    "trials",
    "trial grades",
    "inclusion",
    "analysis",
    "run grades",
    "sbom",
    "attestation summary",
    "manifest",
    "checkpoint and signatures",
)
_WORDS_ONLY = frozenset(["title", "description", "$comment", "examples"])
_START = datetime(2026, 1, 1, tzinfo=UTC)


class FrozenContract(NamedTuple):
    """One contract that changes only with a new version."""

    name: str
    version: str
    digest: str

    def as_json(self) -> dict[str, str]:
        """The row as a JSON object."""
        return self._asdict()


FROZEN: tuple[FrozenContract, ...] = (
    FrozenContract("task", "1", "sha256:03ec4558a578ee6d5383e75e04f73c6509cb0f9e6ae102de94fdc8b8f950e2d3"),
    FrozenContract("run_record", "1", "sha256:606c9cc733b38d0cbfa4b7164751d9588ce38cd2215bf3c8f6d82510055a0b62"),
    FrozenContract("score_record", "1", "sha256:d86f52940de1086032cbffa27473a284590495c10fdd21a3a9d2819f4c0bc61d"),
    FrozenContract("rules", "1", "sha256:bc434e8c5ddaa0dc78cb9b9bc7e601a9e37239ef1cf33f82e603e51fcbaffc11"),
    FrozenContract("scenario", "1", "sha256:41c65944d77b0f4c51cbf25c7174a62957ee2419e5456bf8273ee6722a0d14ce"),
    FrozenContract("pipeline_order", "1", "sha256:cdfde72c5ef63d48c8a6d12a5a4e1454e4b0c8d34123b843f6f2674c21a09878"),
    FrozenContract(CONTRACT, "1", "sha256:7455cb0f3e66cc63ebd987e62fcf426a8fc939015a82a3178918f21124b7a9b0"),
)


def frozen_contracts() -> tuple[FrozenContract, ...]:
    """Every frozen contract, with the digest that its version was published with."""
    return FROZEN


def current_digests() -> dict[str, str]:
    """Contract name to the digest of what the code and the schemas say now."""
    return {name: str(Digest.of(canonical_bytes(meaning()))) for name, meaning in _MEANING.items()}


def changed_contracts() -> list[str]:
    """Names of contracts that no longer mean what their version says."""
    now = current_digests()
    return [row.name for row in FROZEN if now[row.name] != row.digest]


def _schemas(*names: str) -> Callable[[], object]:
    return lambda: [_without_words(parse_json(read_schema(name), where=name)) for name in names]


def _without_words(value: Any, *, names_fields: bool = False) -> Any:
    """A schema without its annotations; a property that is called `title` stays."""
    if isinstance(value, list):
        return [_without_words(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_words(item, names_fields=not names_fields and key in ("properties", "$defs", "patternProperties"))
        for key, item in value.items()
        if names_fields or key not in _WORDS_ONLY
    }


def _rules() -> object:
    return [[row.id, row.about, row.severity] for row in BOOK]


def _handoff() -> object:
    """The handoff of every event type, kind and combination of references, and the limits of its meaning."""
    types = [*EVENT_TYPES.values(), FALLBACK]
    table = [
        [kind, task, sent_task, sent_message, observe_handoff(kind, task, **_sent(sent_task, sent_message))]
        for kind in types
        for task in ("delegation", "other", None)
        for sent_task in (False, True)
        for sent_message in (False, True)
    ]
    return [table, [row.as_json() for row in HANDOFF_MEANINGS]]


def _sent(task: bool, message: bool) -> dict[str, bool]:
    return {"task_id_was_sent": task, "message_id_was_sent": message}


def _scenario() -> object:
    """Records of fixed scenarios: every form of reference, a failure with skipped steps, a null that moves."""
    return [
        _run(_steps("a", "b", "c"), {"b": [("step:a.output.word", "input.word")], "c": [("step:previous", "input")]}),
        _run(_steps("a", "b.x", "c"), {"c": [("step:b.x.output.echo.word", "input.deep.word")]}),
        _run(_steps("a", "b"), {"b": [("input:given.0", "input.word"), ("step:a.output.none", "input.none")]}),
        _run(_steps("a", "fail", "c"), {"c": [("step:a.output", "input.first")]}),
        _run(_steps("a", "b", "c"), {"b": [("step:a.output.absent", "input.word")]}),
    ]


def _steps(*names: str) -> list[dict[str, Any]]:
    return [{"id": name, "name": name, "type": "t", "input": {"own": name}, "metadata": {}} for name in names]


def _run(steps: list[dict[str, Any]], flow: dict[str, list[tuple[str, str]]]) -> dict[str, Any]:
    task = {
        "id": "scenario",
        "name": "n",
        "description": "d",
        "steps": steps,
        "input_map": {step: [{"from": a, "to": b} for a, b in entries] for step, entries in flow.items()},
        "metadata": {"scenarioInput": {"given": ["word"]}},
    }
    return execute(task, _echo, run_id="r", provenance=Provenance("p", "1"), clock=WoundClock(_START))


def _echo(call: StepCall) -> StepResult:
    if call.task["id"] == "fail":
        raise StepFailed("as asked")
    return StepResult({"word": call.task["id"], "none": None, "echo": call.task["input"]})


_MEANING: dict[str, Callable[[], object]] = {
    "task": _schemas("atomic_task_v1", "scenario_task_v1"),
    "run_record": _schemas("run_record_v1"),
    "score_record": _schemas("score_record_v1"),
    "rules": _rules,
    "scenario": _scenario,
    "pipeline_order": lambda: list(PIPELINE_ORDER),
    CONTRACT: _handoff,
}
