"""Makes small runs for tests: no sandbox, but the real store writers, trial records, trees, keys and signatures.

    python tests/make_run.py FOLDER [--tasks N]     writes FOLDER/.lab with one sealed, signed run

What a sandbox would show (outcomes, inventories, payloads) is invented here; everything that is observed from stored
files, graded, analysed, hashed, chained or signed is done by the same code that a real run uses.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from labaudit.attest.keys import PrivateKey
from labaudit.attest.log_key import LogKey
from labaudit.attest.seal import Sealed, seal_run, sign_resolve_link
from labaudit.attest.signers import KeySigner, Signer
from labaudit.attest.trust_store import ensure_keys
from labaudit.core import ids
from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import Clock, FixedClock, rfc3339
from labaudit.core.digest import Digest
from labaudit.evidence.observation import Unenforced
from labaudit.evidence.observe import observe_trial
from labaudit.evidence.trial_facts import EndCause, SandboxFacts, TrialFacts
from labaudit.evidence.trial_record import artifact_lines, build_trial_record
from labaudit.grading.grades import RunGrader, grade_trial
from labaudit.planning.schedule import PlannedTrial, TrialPlanner
from labaudit.records.comparisons import Comparisons
from labaudit.records.grades import Grades
from labaudit.records.ids import Ids
from labaudit.records.inclusion import Inclusion
from labaudit.records.resolved import ResolvedExperiment
from labaudit.records.trial_record import TrialRecord
from labaudit.store import atomic
from labaudit.store.event_log import EventLog, LogIdentity
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder

START = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)
IMAGE = "sha256:" + "5a" * 32
PACKAGES = (("libc6", "2.36-9", "deb"), ("python3", "3.11.2-1", "deb"))


@dataclass
class RunPlan:
    """What the made-up run looks like."""

    tasks: int = 3
    replications: int = 1
    events: int = 6
    lost: frozenset[int] = frozenset({4})
    failures: frozenset[int] = frozenset({2})
    with_sbom: bool = True
    analysis: bool = True
    extra_files: dict[str, bytes] = field(default_factory=dict)


@dataclass
class MadeRun:
    """A run and the keys that signed it."""

    lab: LabFolder
    run: RunFolder
    signing: PrivateKey
    log_key: LogKey
    sealed: Sealed


def make_run(
    folder: Path,
    plan: RunPlan | None = None,
    *,
    signer: Signer | None = None,
    sign: bool = True,
    before_seal: Callable[[Path], None] | None = None,
) -> MadeRun:
    """A lab in `folder/.lab` with one finished run; `before_seal` may add files to it."""
    plan = plan or RunPlan()
    lab = LabFolder(folder / ".lab")
    keys = ensure_keys(lab)
    clock = FixedClock(START, timedelta(milliseconds=7))
    run, resolved, digest, schedule = _start(lab, plan, clock)
    if sign:
        sign_resolve_link(run, keys.signing)
    for planned in schedule:
        _trial(run, resolved, digest, planned, plan, clock)
    finish_run(run, schedule, resolved, plan)
    if before_seal is not None:
        before_seal(run.path)
    sealed = seal_run(
        run,
        (signer or KeySigner(keys.signing)) if sign else None,
        clock=clock,
        log_key=keys.log,
        layout_key=keys.signing,
        sbom_missing=[] if plan.with_sbom else [{"subject": "image", "reason": "not asked for"}],
    )
    return MadeRun(lab, run, keys.signing, keys.log, sealed)


def _start(
    lab: LabFolder, plan: RunPlan, clock: Clock
) -> tuple[RunFolder, ResolvedExperiment, Digest, list[PlannedTrial]]:
    tasks = [{"id": f"t{number}", "prompt": "Greet", "expected": "Hello"} for number in range(plan.tasks)]
    dataset = b"".join(canonical_bytes(task) + b"\n" for task in tasks)
    document = resolved_document(dataset, plan)
    digest = Digest.of_json(document)
    run = lab.new_run(ids.run_id(START, digest))
    atomic.write_json(run.resolved, document)
    atomic.write_bytes(run.resolved_digest, str(digest).encode())
    reference = run.artifacts.put(dataset, "application/jsonl")
    atomic.write_lines(run.artifact_list, list(artifact_lines(run.artifacts, {reference: "dataset"})))
    for variant in document["variants"]:
        atomic.write_json(run.variant(variant["id"]), variant)
    resolved = ResolvedExperiment.from_json(document)
    schedule = TrialPlanner.plan(resolved, digest, [task["id"] for task in tasks])
    atomic.write_lines(run.schedule, [planned.as_json() for planned in schedule])
    return run, resolved, digest, schedule


def _trial(
    run: RunFolder, resolved: ResolvedExperiment, digest: Digest, planned: PlannedTrial, plan: RunPlan, clock: Clock
) -> None:
    trial = run.trial(planned.trial_id)
    names = {
        "run_id": run.run_id,
        "trial_id": planned.trial_id,
        "variant_id": planned.variant_id,
        "task_id": planned.task_id,
        "repl_idx": planned.repl_idx,
    }
    lost = planned.index in plan.lost
    started = rfc3339(clock.now())
    references: dict[str, str] = {}
    if not lost:
        outcome = "failure" if planned.index in plan.failures else "success"
        atomic.write_json(trial.trial_input, {"schema_version": "trial_input_v1", "ids": names})
        atomic.write_json(trial.trial_output, {"schema_version": "trial_output_v1", "ids": names, "outcome": outcome})
        atomic.write_json(trial.metrics, _metrics(names, outcome))
        atomic.write_bytes(trial.stdout, f"greeting {planned.task_id}\n".encode())
    atomic.write_json(trial.state_inventory, _inventory(names, resolved, "lost" if lost else "exited"))
    _events(run, trial.events, trial.events_head, names, str(digest), plan, clock, references, lost)
    facts = TrialFacts(
        Ids.from_json(names),
        1,
        str(digest),
        "lost" if lost else "completed",
        None if lost else outcome,  # type: ignore[arg-type]
    )
    atomic.write_bytes(trial.grades, grade_trial(observe_trial(trial, resolved, facts)).to_bytes())
    atomic.write_lines(trial.artifacts, list(artifact_lines(run.artifacts, references)))
    record = build_trial_record(
        trial,
        run.artifacts,
        ids=Ids.from_json(names),
        index=planned.index,
        attempt=1,
        status="lost" if lost else "completed",
        outcome=None if lost else outcome,
        resolved=resolved,
        resolved_digest=digest,
        started_at=started,
        ended_at=rfc3339(clock.now()),
        evidence_origin="local",
    )
    atomic.write_bytes(trial.trial_record, record.to_bytes())


def _events(
    run: RunFolder,
    path: Path,
    head: Path,
    names: dict[str, Any],
    digest: str,
    plan: RunPlan,
    clock: Clock,
    references: dict[str, str],
    lost: bool,
) -> None:
    log = EventLog(path, LogIdentity(**names, attempt=1, resolved_digest=digest), clock=clock)
    log.append("trial.started")
    if lost:
        reason = run.artifacts.put(canonical_bytes({"reason": "the sandbox went away"}), "application/json")
        references[reason] = "event payload"
        log.append("attempt.lost", payload_ref=reason)
        log.seal(head)
        return
    for number in range(plan.events):
        payload = canonical_bytes({"step": number, "trial": names["trial_id"]})
        redaction = {"applied": True, "mode": "hash"} if number == 0 else {"applied": False}
        reference = run.artifacts.put(payload, "application/json", redaction, durable=False)
        references[reference] = "event payload"
        log.append("harness.output", step_index=number, payload_ref=reference, redaction=redaction)
    log.seal(head)


def finish_run(run: RunFolder, schedule: list[PlannedTrial], resolved: ResolvedExperiment, plan: RunPlan) -> None:
    """Inclusion, analysis, grades and SBOM of a run whose trials are done."""
    grader, rows = RunGrader(), []
    for planned in schedule:
        trial = run.trial(planned.trial_id)
        facts = TrialFacts.from_record(TrialRecord.from_bytes(trial.trial_record.read_bytes()))
        grader.add(Grades.from_bytes(trial.grades.read_bytes()), observe_trial(trial, resolved, facts))
        rows.append(_row(planned, facts))
    lost = sum(row["status"] == "lost" for row in rows)
    totals = {"scheduled": len(rows), "included": len(rows) - lost, "excluded": 0, "lost": lost}
    included = Inclusion.from_json(
        {"schema_version": "inclusion_v1", "run_id": run.run_id, "rows": rows, "totals": totals}
    )
    atomic.write_bytes(run.inclusion, included.to_bytes())
    if plan.analysis:
        from labaudit.analysis.runner import AnalysisRunner, write_analysis

        write_analysis(AnalysisRunner(run).run(), run)
    else:
        atomic.write_json(run.summary, {"schema_version": "summary_v1", "run_id": run.run_id})
    comparisons = Comparisons.from_bytes(run.comparisons.read_bytes()) if plan.analysis else None
    atomic.write_bytes(run.grades, grader.grades(run.run_id, included, comparisons).to_bytes())
    if plan.with_sbom:
        _sboms(run)
    for name, data in plan.extra_files.items():
        atomic.write_bytes(run.path / name, data, durable=False)


def _row(planned: PlannedTrial, facts: TrialFacts) -> dict[str, Any]:
    lost = facts.status == "lost"
    return planned.as_json() | {
        "status": facts.status if lost else "included",
        "rule": "L1" if lost else "I1",
        "reason": "the sandbox went away" if lost else "the trial ended with a result",
        "outcome": facts.outcome,
        "attempts": facts.attempt,
    }


def _inventory(names: dict[str, Any], resolved: ResolvedExperiment, end_cause: EndCause) -> dict[str, Any]:
    unenforced = (Unenforced("out_mb", "the engine has no size-limited tmpfs"),)
    return {
        "schema_version": "state_inventory_v1",
        "ids": names,
        "sanitization_profile": resolved.design.sanitization_profile,
        "integration_level": "cli_basic",
        "mounts": [{"name": "out", "path": "/out", "writable": True}],
        "network": {
            "mode_requested": "none",
            "mode_effective": "none",
            "enforcement_effective": "docker_none",
            "bypass_risk": "none",
            "egress_self_test": {"performed": False, "cases": []},
        },
        "harness_identity": {"exec_digest": "sha256:" + "6b" * 32},
        "violations": {"state_leak": False, "profile_invariant_violation": False},
        "ext": SandboxFacts("docker", end_cause, unenforced).as_ext(),
    }


def _sboms(run: RunFolder) -> None:
    from labaudit.attest.sbom import Component, SbomSubject, write_documents

    components = [Component(name=name, version=version, kind=kind) for name, version, kind in PACKAGES]
    write_documents(run.sbom, "image", SbomSubject("image", "labaudit-demo", IMAGE), components, created=START)


def _metrics(names: dict[str, Any], outcome: str) -> dict[str, Any]:
    return {
        "schema_version": "metrics_v1",
        "ids": names,
        "outcome": outcome,
        "metrics": {"success": int(outcome == "success")},
        "sources": {"success": "evaluator:exact"},
        "missing": {},
        "self_reported": [],
    }


def resolved_document(dataset: bytes, plan: RunPlan) -> dict[str, Any]:
    """A resolved experiment with two variants."""
    sha256 = Digest.of(dataset).hex
    base, other = {"id": "base", "bindings": {"greeting": "Hello"}}, {"id": "drop_10p", "bindings": {"greeting": "Hi"}}
    return {
        "schema_version": "resolved_experiment_v0_3",
        "version": "0.3",
        "experiment": {"id": "greet", "name": "Greeting agent", "description": "", "tags": []},
        "dataset": {
            "path": "tasks.jsonl", "format": "jsonl", "sha256": sha256, "size": len(dataset), "id_field": "id",
            "limit": None, "count": plan.tasks, "artifact_ref": f"artifact://sha256/{sha256}",
        },
        "design": {
            "sanitization_profile": "hermetic_functional_v2", "replications": plan.replications, "seed": 7,
            "shuffle_tasks": True, "randomize_variant_order": True, "block_by_task": True,
            "fail_on_profile_invariant_violation": False, "retries": {"infra": 1},
        },
        "baseline": base,
        "variants": [base, other],
        "variant_plan": ["drop_10p"],
        "runtime": {
            "engine": {"requested": "auto", "resolved": "docker", "reason": "an engine answers"},
            "image": {"requested": "labaudit-demo", "id": IMAGE, "origin": "bundled"},
            "harness": {
                "mode": "cli", "command": ["python3", "/harness/agent.py"], "exec_digest": "sha256:" + "6b" * 32,
                "source_digest": "sha256:" + "7c" * 32, "source": "harness/", "integration_level": "cli_basic",
                "control_plane": {"mode": "file", "path": "/state/lab_control.json"}, "tracing": {"mode": "none"},
                "env": {}, "secrets": [], "input_path": "/in/trial_input.json",
                "output_path": "/out/trial_output.json", "runtime_fingerprint": "python 3.11",
            },
            "network": {"mode": "none", "enforcement": "auto", "allowed_hosts": [], "allowed_networks": []},
            "budgets": {},
            "timeouts": {"trial_seconds": 60},
            "resources": {"memory_mb": 512, "cpus": 1, "pids": 128, "out_mb": 64, "workspace_mb": 256},
            "checkpoints": {"every_steps": None, "at_end": False},
            "cache": None,
        },
        "evaluators": [{"id": "exact", "type": "exact_match", "metric": "success", "expected": "expected"}],
        "metrics": [{"name": "success", "type": "binary", "direction": "higher", "source": "evaluator:exact"}],
        "analysis_plan": {
            "primary": ["success"], "secondary": [], "missingness": "paired_drop",
            "ci": {"method": "auto", "level": 0.95, "resamples": 1000},
            "correction": {"primary": "holm", "secondary": "bh"}, "estimand": "tasks_like_these", "cluster": None,
        },
        "redaction": {"rules": [{"pattern": "sk-[A-Za-z0-9]{8,}", "mode": "hash"}]},
        "provenance": {"sbom": "optional" if plan.with_sbom else "off", "sign": True},
        "executor": {"trusted_workers": []},
        "schedule": {"trials": plan.tasks * plan.replications * 2, "seed": 7},
        "defaults": [],
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", type=int, default=3)
    arguments = parser.parse_args()
    made = make_run(arguments.folder, RunPlan(tasks=arguments.tasks))
    print(made.run.path)
