"""What an engine saw of a sandbox to `state_inventory.json`: observed values only, gaps named with their reason."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from labaudit.engines.protocol import Collection, NotObserved, Observed, SandboxResult
from labaudit.evidence.observation import Unenforced
from labaudit.evidence.trial_facts import SandboxFacts
from labaudit.records.ids import Ids
from labaudit.records.resolved_runtime import ResolvedHarness
from labaudit.runner.context import RunContext
from labaudit.runner.profile import Profile, ProfileEnforcer, RuntimeState, leaks, profiles

MAX_REFUSED = 100


def state_inventory(
    ctx: RunContext, ids: Ids, result: SandboxResult, collection: Collection, level: str
) -> dict[str, Any]:
    """The document; `level` is the integration level that was observed."""
    design = ctx.resolved.design
    asked = ctx.resolved.runtime.network
    network = replace(result.network, mode_requested=asked.mode, allowed_hosts=tuple(asked.allowed_hosts))
    self_test = ctx.self_test or {"performed": False, "cases": []}
    violations = ProfileEnforcer.check(
        RuntimeState(design.sanitization_profile, network, result.observed, _passed(ctx, network.mode_requested))
    )
    profile = profiles()[design.sanitization_profile]
    leaked = leaks(profile, result.observed)
    found: dict[str, Any] = {
        "mode_requested": network.mode_requested,
        "mode_effective": network.mode_effective,
        "enforcement_effective": network.enforcement,
        "bypass_risk": network.bypass_risk,
        "egress_self_test": {"performed": self_test["performed"], "cases": self_test["cases"]},
    }
    if network.mode_requested == "allowlist_enforced":
        found["allowed_hosts"] = list(network.allowed_hosts)
    return {
        "schema_version": "state_inventory_v1",
        "ids": ids.to_json(),
        "sanitization_profile": design.sanitization_profile,
        "integration_level": level,
        "mounts": _mounts(profile, result.observed),
        "network": found,
        "harness_identity": harness_identity(ctx.resolved.runtime.harness),
        "violations": {
            "state_leak": bool(leaked),
            "profile_invariant_violation": bool(violations),
            "notes": list(violations),
        },
        "ext": _ext(ctx, result, collection),
    }


def harness_identity(harness: ResolvedHarness) -> dict[str, Any]:
    """Which harness ran, as the resolved spec fixed it."""
    identity: dict[str, Any] = {"exec_digest": harness.exec_digest, "entry_command": list(harness.command)}
    for key in ("source_digest", "lockfile_digest", "runtime_fingerprint"):
        value = getattr(harness, key)
        if value is not None:
            identity[key] = value
    if harness.source_provenance is not None:
        identity["source_provenance"] = harness.source_provenance.to_json()
    return identity


def _passed(ctx: RunContext, mode: str) -> bool | None:
    if mode != "allowlist_enforced":
        return None
    return bool(ctx.self_test and ctx.self_test.get("verdict") == "pass")


def _mounts(profile: Profile, observed: Observed) -> list[dict[str, Any]]:
    if isinstance(observed.mounts, NotObserved):
        return []
    # Engines mount in any order; a difference between two inventories shall be a difference between two sandboxes.
    shown = sorted((mount for mount in observed.mounts if mount.path in profile.surfaces), key=lambda mount: mount.path)
    return [{"name": mount.path.strip("/"), "path": mount.path, "writable": mount.writable} for mount in shown]


def _ext(ctx: RunContext, result: SandboxResult, collection: Collection) -> dict[str, Any]:
    facts = SandboxFacts(
        engine=ctx.engine.name,
        end_cause=result.cause,
        unenforced=tuple(Unenforced(item.what, item.why) for item in result.unenforced),
        missing_manifest_allowed=ctx.options.allow_missing_harness_manifest,
        details=_details(ctx, result, collection),
    )
    return facts.as_ext()


def _details(ctx: RunContext, result: SandboxResult, collection: Collection) -> dict[str, Any]:
    return {
        "engine_facts": {"image": ctx.resolved.runtime.image.id, **_plain_dict(ctx.engine_facts)},
        "end": {
            "exit_code": result.exit_code,
            "signal": result.signal,
            "timed_out": result.timed_out,
            "stop_reason": result.stop_reason,
            "oom": {
                "verdict": result.oom.verdict,
                "engine_flag": result.oom.engine_flag,
                "exit_137": result.oom.exit_137,
                "kernel_kills": result.oom.kernel_kills,
            },
        },
        "observed": _observed(result.observed),
        "network": {
            "pooled": result.network.pooled,
            "proxy_alive_at_end": result.network.proxy_alive_at_end,
            "notes": list(result.network.notes),
            "self_test": (ctx.self_test or {}).get("artifact_ref"),
        },
        "outputs": {
            "files": len(collection.files),
            "bytes": collection.total_bytes,
            "refused_total": len(collection.refused),
            "refused": [
                {"path": item.path, "kind": item.kind, "reason": item.reason}
                for item in collection.refused[:MAX_REFUSED]
            ],
        },
    }


def _observed(observed: Observed) -> dict[str, Any]:
    return {item.name: _plain(getattr(observed, item.name)) for item in fields(observed) if item.name != "engine"}


def _plain_dict(value: dict[str, object]) -> dict[str, Any]:
    return {key: _plain(item) for key, item in value.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, NotObserved):
        return {"not_observed": value.reason}
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    return value
