"""The egress self-test that an allowlist needs before its first trial, kept as an artifact of the run."""

from __future__ import annotations

from collections.abc import Callable

from labaudit.engines.protocol import Engine
from labaudit.records.resolved import ResolvedExperiment
from labaudit.store.run_folder import RunFolder


def run_self_test(
    engine: Engine, image_id: str, resolved: ResolvedExperiment, run: RunFolder, say: Callable[[str], None]
) -> dict[str, object] | None:
    """{performed, verdict, cases, artifact_ref} for the inventories; None where the mode needs no test.

    An engine that cannot enforce an allowlist has nothing to test: that is recorded as not performed.
    """
    if resolved.runtime.network.mode != "allowlist_enforced":
        return None
    if engine.name == "process":
        return {"performed": False, "verdict": "not_performed", "cases": [], "artifact_ref": None}
    from labaudit.engines.checks.egress_test import run_egress_test

    say("egress self-test")
    network = resolved.runtime.network
    outcome = run_egress_test(
        engine,
        allowed_hosts=tuple(network.allowed_hosts),
        allowed_networks=tuple(network.allowed_networks),
        store=lambda document: run.artifacts.put(document, "application/json"),
    )
    say(f"egress self-test: {outcome.result}{''.join(f'; {reason}' for reason in outcome.reasons[:3])}")
    return {
        "performed": True,
        "verdict": outcome.result,
        "cases": list(outcome.cases),
        "artifact_ref": outcome.artifact_ref,
    }
