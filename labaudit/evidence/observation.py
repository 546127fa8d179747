"""What can be said about one trial from its stored files alone, as one frozen value.

Grades are pure functions of this value. A thing that no file shows is `NotObserved` with its reason; it is never zero,
never false and never left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal

from labaudit.records.fields import EvidenceSource, IntegrationLevel, Outcome
from labaudit.records.ids import Ids
from labaudit.records.state_inventory import SelfTestCase

ObservedLevelName = IntegrationLevel | Literal["not_observed"]
SOURCES: tuple[EvidenceSource, ...] = (
    "framework_events",
    "hooks",
    "traces",
    "sdk",
    "network_proxy",
    "imported",
)


@dataclass(frozen=True)
class NotObserved:
    """Nobody could see this; `reason` says why."""

    reason: str


@dataclass(frozen=True)
class Coverage:
    """Whether a kind of evidence is there and usable, and how many of the things that lie there are counted.

    A stream that broke its rules is not present, covers nothing, and still has its total.
    """

    present: bool
    covered: int = 0
    total: int = 0


@dataclass(frozen=True)
class ObservedLevel:
    """The integration level that config expected, that the manifest claimed, and that evidence shows."""

    expected: IntegrationLevel | None
    claimed: IntegrationLevel | None
    observed: ObservedLevelName
    why: str
    """One sentence: which evidence the observed level rests on."""
    caps: tuple[str, ...] = ()
    """Sentences: what kept it from being higher."""


@dataclass(frozen=True)
class ObservedManifest:
    """The state of harness_manifest.json."""

    present: bool
    valid: bool
    required: bool
    """True when the expected level is above cli_basic."""
    missing_allowed: bool
    """True when the run was started with --allow-missing-harness-manifest."""
    problem: str = ""
    notes: tuple[str, ...] = ()
    """Numbered rules (M1 to M3) that a valid manifest breaks; they cap nothing by themselves."""

    @property
    def hard_failure(self) -> bool:
        """A required manifest that is missing or broken, without leave to go on."""
        return self.required and not self.valid and not self.missing_allowed


@dataclass(frozen=True)
class HookFinding:
    """One broken rule of the hook stream, with the line it stands at (0: the stream as a whole)."""

    line: int
    rule: str
    name: str
    weight: Literal["unreadable", "invalidates", "degrades"]
    sentence: str


@dataclass(frozen=True)
class ObservedHooks:
    """The hook stream. From an invalid stream nothing is counted."""

    present: bool
    valid: bool
    strict: bool
    """True under replay_strict_v2: there an invalid stream fails the trial."""
    event_count: int = 0
    findings: tuple[HookFinding, ...] = ()
    """The first ones, in order; `findings_total` counts all."""
    findings_total: int = 0
    findings_by_rule: Mapping[str, int] = field(default_factory=dict)
    turn_count: int | NotObserved = NotObserved("no hook stream")
    step_count: int | NotObserved = NotObserved("no hook stream")
    tool_calls: int | NotObserved = NotObserved("no hook stream")
    tokens_in: int | NotObserved = NotObserved("no hook stream")
    tokens_out: int | NotObserved = NotObserved("no hook stream")
    errors: int | NotObserved = NotObserved("no hook stream")
    acks_missing: int | NotObserved = NotObserved("no hook stream")
    """Step ends without their control_ack; known for an invalid stream too, as the defect that it is."""
    acks_verified: int | NotObserved = NotObserved("no hook stream")
    """Acks whose version and action equal one that the runner wrote."""
    causal_events: int | NotObserved = NotObserved("no hook stream")
    causal_without_step: int | NotObserved = NotObserved("no hook stream")
    stopped: bool | NotObserved = NotObserved("no hook stream")
    checkpoints_acked: int | NotObserved = NotObserved("no hook stream")

    @property
    def fails_trial(self) -> bool:
        """A broken stream in a strict profile, or one that the manifest promises and that is not there."""
        return self.strict and not self.valid and (self.present or self.findings_total > 0)


@dataclass(frozen=True)
class ObservedTraces:
    """Spans that the runner received or counted in files."""

    present: bool
    mode: Literal["none", "otlp", "manifest"]
    span_count: int | NotObserved
    files: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class ObservedSdk:
    """Control callbacks and recorded causal boundaries."""

    present: bool
    control_callbacks: int | NotObserved
    """Acks that also say which action the harness took."""
    boundaries_recorded: int
    boundaries_complete: bool
    """The record is chained, ended, and covers every causal event of the hook stream."""
    problem: str = ""
    """Why the boundaries are not complete; empty when they are."""


@dataclass(frozen=True)
class ObservedNetwork:
    """Network mode and enforcement as state_inventory.json says they were found."""

    mode_requested: str
    mode_effective: str
    enforcement: str
    bypass_risk: str | NotObserved
    allowed_hosts: tuple[str, ...]
    self_test_performed: bool
    self_test_cases: tuple[SelfTestCase, ...]
    events_present: bool
    """Whether network_events.jsonl is there."""
    allowed: int | NotObserved = NotObserved("no proxy log")
    blocked: int | NotObserved = NotObserved("no proxy log")
    problems: tuple[str, ...] = ()
    pooled: bool = False
    """The proxy served other trials of the same worker before or after this one."""
    proxy_died: bool = False
    """The proxy did not answer any more when the trial ended."""

    @property
    def self_test_ok(self) -> bool:
        """At least one allow and one block case, and every case as expected."""
        kinds = {case.expected for case in self.self_test_cases}
        fine = all(case.observed == case.expected for case in self.self_test_cases)
        return self.self_test_performed and kinds == {"allow", "block"} and fine


@dataclass(frozen=True)
class ObservedViolations:
    """Leaks and broken invariants that the runner saw."""

    state_leak: bool
    profile_invariant: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unenforced:
    """A limit that was asked for and was not in force."""

    what: str
    why: str


@dataclass(frozen=True)
class ObservedEvents:
    """The framework's own event log."""

    present: bool
    sealed: bool
    chain_ok: bool
    """Chain, totals and events.head agree on the stored bytes."""
    count: int = 0
    types: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class ObservedWorker:
    """The worker that signed for a trial, as its receipt names it."""

    worker_id: str
    key_id: str
    trusted: bool
    """Its key is in the trust set that the experiment declares."""
    problem: str = ""


@dataclass(frozen=True)
class ObservedTrial:
    """One trial, as its files show it."""

    ids: Ids
    outcome: Outcome | NotObserved
    lost: bool
    """The last attempt ended without a result of its own (crash, kill, engine failure)."""
    attempts: int | NotObserved
    evidence_origin: Literal["local", "worker", "imported"]
    profile: str
    end_cause: str | NotObserved
    """exited, timeout, stopped, killed or lost."""
    level: ObservedLevel
    sources: Mapping[EvidenceSource, Coverage]
    manifest: ObservedManifest
    hooks: ObservedHooks
    traces: ObservedTraces
    sdk: ObservedSdk
    network: ObservedNetwork | NotObserved
    violations: ObservedViolations | NotObserved
    unenforced: tuple[Unenforced, ...] | NotObserved
    events: ObservedEvents
    engine: str | NotObserved
    worker: ObservedWorker | None = None
    """Of a trial that a remote worker executed: whose receipt it carries."""
    checkpoints: tuple[str, ...] = ()
    """Labels of the checkpoints that are stored, sorted."""
    state_ext: Mapping[str, object] = field(default_factory=dict)
    """`ext` of state_inventory.json, for rules that look at engine facts."""

    def as_json(self) -> dict[str, object]:
        """The whole value as JSON, for display."""
        value = _plain(self)
        assert isinstance(value, dict)
        return value


def _plain(value: object) -> object:
    if isinstance(value, NotObserved):
        return {"not_observed": value.reason}
    if isinstance(value, Ids | SelfTestCase):
        return value.to_json()
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
