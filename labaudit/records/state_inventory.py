"""state_inventory.json: which surfaces and network a trial really had, as observed."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import (
    ArtifactRef,
    BypassRisk,
    Command,
    DigestText,
    Enforcement,
    Fingerprint,
    IntegrationLevel,
    JsonObject,
    Many,
    NetworkMode,
    SanitizationProfile,
    Text,
)
from labaudit.records.ids import Ids
from labaudit.records.parts import SourceProvenance


class Mount(Record):
    """A surface inside the sandbox."""

    name: str
    path: str
    writable: bool


class SelfTestCase(Record):
    """One target of the egress self-test: what should happen and what did."""

    target: Text
    expected: Literal["allow", "block"]
    observed: Literal["allow", "block", "error", "unknown"]
    ok: bool
    artifact_ref: ArtifactRef | None = None


class EgressSelfTest(Record):
    """The self-test that was or was not performed before the trials."""

    performed: bool
    cases: Many[SelfTestCase]


class ObservedNetwork(Record):
    """What was asked for, and what was in force."""

    mode_requested: NetworkMode
    mode_effective: NetworkMode
    allowed_hosts: Many[Text] | None = None
    enforcement_effective: Enforcement
    bypass_risk: BypassRisk | None = None
    egress_self_test: EgressSelfTest


class HarnessIdentity(Record):
    """Which harness ran."""

    name: str | None = None
    source_digest: DigestText | None = None
    source_provenance: SourceProvenance | None = None
    exec_digest: DigestText
    entry_command: Command | None = None
    lockfile_digest: DigestText | None = None
    runtime_fingerprint: Fingerprint | None = None


class Violations(Record):
    """Leaks and broken invariants that were seen."""

    state_leak: bool
    profile_invariant_violation: bool
    notes: Many[str] | None = None


class StateInventory(Record):
    """The observed sandbox of one trial."""

    schema_version: Literal["state_inventory_v1"] = "state_inventory_v1"
    ids: Ids | None = None
    sanitization_profile: SanitizationProfile
    integration_level: IntegrationLevel
    mounts: Many[Mount]
    network: ObservedNetwork
    harness_identity: HarnessIdentity
    violations: Violations
    ext: JsonObject | None = None
