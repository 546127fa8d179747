"""What the runner knows about a trial and no evidence file repeats: its ids, its end, what the engine could not hold.

`TrialFacts` is the part that `trial_record.json` keeps, so that a verifier gets it from there; `SandboxFacts` is the
part that `state_inventory.json` keeps under `ext`. Both come back from stored files exactly as they went in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from labaudit.evidence.observation import NotObserved, Unenforced
from labaudit.records.fields import EvidenceOrigin, Outcome
from labaudit.records.ids import Ids
from labaudit.records.trial_record import TrialRecord

EndCause = Literal["exited", "timeout", "stopped", "killed", "lost"]
CUT_SHORT = frozenset({"timeout", "stopped", "killed", "lost"})


@dataclass(frozen=True)
class TrialFacts:
    """One attempt as the run counts it."""

    ids: Ids
    attempt: int
    resolved_digest: str
    status: Literal["completed", "lost"]
    outcome: Outcome | None
    evidence_origin: EvidenceOrigin = "local"

    @classmethod
    def from_record(cls, record: TrialRecord) -> TrialFacts:
        """The facts of a trial that is already sealed."""
        return cls(
            ids=record.ids,
            attempt=record.attempt,
            resolved_digest=record.resolved_digest,
            status=record.status,
            outcome=record.outcome,
            evidence_origin=record.evidence_origin,
        )


@dataclass(frozen=True)
class SandboxFacts:
    """What the engine reported, in plain values. `details` takes whatever else belongs into the inventory's `ext`."""

    engine: str
    end_cause: EndCause
    unenforced: tuple[Unenforced, ...] = ()
    missing_manifest_allowed: bool = False
    details: Mapping[str, object] = field(default_factory=dict)

    def as_ext(self) -> dict[str, object]:
        """`ext` of state_inventory.json."""
        return {
            **self.details,
            "engine": self.engine,
            "end_cause": self.end_cause,
            "unenforced": [{"what": item.what, "why": item.why} for item in self.unenforced],
            "missing_manifest_allowed": self.missing_manifest_allowed,
        }


@dataclass(frozen=True)
class StoredFacts:
    """The same, read back; what the inventory does not say stays unknown."""

    engine: str | NotObserved
    end_cause: str | NotObserved
    unenforced: tuple[Unenforced, ...] | NotObserved
    missing_manifest_allowed: bool

    @property
    def cut_short(self) -> bool:
        """The runner or a crash ended the harness, so a step left open is no fault of it."""
        return self.end_cause in CUT_SHORT


NO_INVENTORY = StoredFacts(
    engine=NotObserved("no state_inventory.json"),
    end_cause=NotObserved("no state_inventory.json"),
    unenforced=NotObserved("no state_inventory.json"),
    missing_manifest_allowed=False,
)


def read_ext(ext: Mapping[str, object] | None) -> StoredFacts:
    """The facts in `ext` of an inventory."""
    values = ext or {}
    return StoredFacts(
        engine=_text(values, "engine"),
        end_cause=_text(values, "end_cause"),
        unenforced=_unenforced(values.get("unenforced")),
        missing_manifest_allowed=values.get("missing_manifest_allowed") is True,
    )


def _text(values: Mapping[str, object], key: str) -> str | NotObserved:
    value = values.get(key)
    return value if isinstance(value, str) else NotObserved(f"state_inventory.json has no ext.{key}")


def _unenforced(value: object) -> tuple[Unenforced, ...] | NotObserved:
    missing = NotObserved("state_inventory.json does not say which limits held")
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return missing
    rows = cast("list[dict[str, object]]", value)
    return tuple(Unenforced(str(row.get("what", "unnamed")), str(row.get("why", "no reason given"))) for row in rows)
