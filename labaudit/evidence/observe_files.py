"""Single evidence files of a trial folder to their part of the observation: inventory, proxy log, traces, event log."""

from __future__ import annotations

from collections import Counter

import orjson

from labaudit.core.strict_json import parse_object
from labaudit.errors import LabauditError
from labaudit.evidence.observation import (
    NotObserved,
    ObservedEvents,
    ObservedNetwork,
    ObservedTraces,
    ObservedViolations,
)
from labaudit.evidence.trial_facts import TrialFacts
from labaudit.records.ids import Ids
from labaudit.records.schema_registry import fast_validator
from labaudit.records.state_inventory import StateInventory
from labaudit.records.trace_manifest import TraceManifest
from labaudit.store import atomic
from labaudit.store.event_log import SEALED, LogIdentity, check_chain, head_document, read_lines
from labaudit.store.run_folder import TrialFolder

_NO_SPANS = NotObserved("no spans were received or counted")


def observe_inventory(trial: TrialFolder) -> StateInventory | NotObserved:
    """state_inventory.json, or why it says nothing."""
    if not trial.state_inventory.is_file():
        return NotObserved("no state_inventory.json")
    try:
        return StateInventory.from_bytes(atomic.read_bytes(trial.state_inventory), where="state_inventory.json")
    except LabauditError as error:
        return NotObserved(f"state_inventory.json cannot be used: {error.what}")


def observe_network(trial: TrialFolder, inventory: StateInventory) -> ObservedNetwork:
    """The network block of the inventory with the decisions that the proxy logged."""
    network = inventory.network
    risk = network.bypass_risk
    present = trial.network_events.is_file()
    allowed, blocked, problems = _decisions(trial) if present else (None, None, ())
    absent = NotObserved("no proxy log" if not present else "the proxy log cannot be read")
    told = (inventory.ext or {}).get("network")
    proxy = told if isinstance(told, dict) else {}
    return ObservedNetwork(
        mode_requested=network.mode_requested,
        mode_effective=network.mode_effective,
        enforcement=network.enforcement_effective,
        bypass_risk=risk if risk is not None else NotObserved("state_inventory.json names no bypass_risk"),
        allowed_hosts=network.allowed_hosts or (),
        self_test_performed=network.egress_self_test.performed,
        self_test_cases=network.egress_self_test.cases,
        events_present=present,
        allowed=allowed if allowed is not None else absent,
        blocked=blocked if blocked is not None else absent,
        problems=problems,
        pooled=proxy.get("pooled") is True,
        proxy_died=proxy.get("proxy_alive_at_end") is False,
    )


def _decisions(trial: TrialFolder) -> tuple[int | None, int | None, tuple[str, ...]]:
    counts: Counter[str] = Counter()
    is_valid = fast_validator("network_event_v1").is_valid
    try:
        for number, line in enumerate(read_lines(trial.network_events), start=1):
            event = orjson.loads(line)
            if not is_valid(event):
                return None, None, (f"network_events.jsonl:{number} breaks network_event_v1",)
            counts[event["decision"]] += event.get("count", 1)
    except (LabauditError, orjson.JSONDecodeError) as error:
        return None, None, (f"network_events.jsonl: {error}",)
    return counts["allow"], counts["block"], ()


def observe_violations(inventory: StateInventory) -> ObservedViolations:
    """Leaks and broken invariants that the inventory states."""
    found = inventory.violations
    return ObservedViolations(found.state_leak, found.profile_invariant_violation, found.notes or ())


def observe_traces(trial: TrialFolder, ids: Ids) -> ObservedTraces:
    """The runner's own trace_manifest.json; spans that it could not count stay uncounted."""
    if not trial.trace_manifest.is_file():
        return ObservedTraces(False, "none", _NO_SPANS)
    try:
        manifest = TraceManifest.from_bytes(atomic.read_bytes(trial.trace_manifest), where="trace_manifest.json")
    except LabauditError as error:
        return ObservedTraces(False, "none", _NO_SPANS, problems=(f"trace_manifest.json: {error.what}",))
    ext = manifest.ext or {}
    problems = tuple(str(item) for item in ext.get("problems", ()))
    if manifest.ids != ids:
        return ObservedTraces(False, "none", _NO_SPANS, problems=(*problems, "trace_manifest.json is of another trial"))
    counted = [entry.span_count for entry in manifest.traces if entry.span_count is not None]
    return ObservedTraces(
        present=bool(manifest.traces),
        mode="otlp" if ext.get("origin") == "otlp" else "manifest",
        span_count=sum(counted) if counted else _NO_SPANS,
        files=len(manifest.traces),
        problems=problems,
    )


def observe_events(trial: TrialFolder, facts: TrialFacts) -> ObservedEvents:
    """events.jsonl with its chain recomputed and held against events.head."""
    if not trial.events.is_file():
        return ObservedEvents(False, False, False, problem="there is no events.jsonl")
    names = facts.ids.to_json()
    identity = LogIdentity(**names, attempt=facts.attempt, resolved_digest=facts.resolved_digest)
    types: Counter[str] = Counter()
    last = ""
    try:
        state = check_chain(trial.events, identity)
        for line in read_lines(trial.events):
            last = orjson.loads(line)["event_type"]
            types[last] += 1
        if not trial.events_head.is_file():
            return ObservedEvents(True, False, False, state.count, dict(types), "there is no events.head")
        head = parse_object(atomic.read_bytes(trial.events_head), where="events.head")
        holds = head == head_document(identity, state) and last == SEALED
    except (LabauditError, KeyError, ValueError) as error:
        what = error.what if isinstance(error, LabauditError) else str(error)
        return ObservedEvents(True, False, False, types.total(), dict(types), what)
    problem = "" if holds else "events.head does not fit the log"
    return ObservedEvents(True, holds, holds, state.count, dict(sorted(types.items())), problem)


def checkpoint_labels(trial: TrialFolder) -> tuple[str, ...]:
    """Labels of the stored checkpoints, sorted."""
    if not trial.checkpoints.is_dir():
        return ()
    names = (path.name for path in trial.checkpoints.glob("checkpoint_*.json"))
    return tuple(sorted(name.removeprefix("checkpoint_").removesuffix(".json") for name in names))
