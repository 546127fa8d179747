"""A run of any number of trials, made by the real writers, up to the point where the last trial has ended.

    python benchmarks/synth.py --trials 100000 --out FOLDER [--processes 2] [--events 6]
    benchmarks/labaudit-bench synth --trials 100000 --out FOLDER

What a sandbox would show (outcomes, outputs, inventories) is invented; event logs, artifacts, sidecars, grades, lists
and records are written by the code that a real run uses, and nothing is written twice or left out. Inclusion, analysis,
grades of the run, seal and signatures are not made here: they are what bench_scale.py measures.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))

from labaudit.attest.seal import sign_resolve_link  # noqa: E402
from labaudit.attest.trust_store import ensure_keys  # noqa: E402
from labaudit.core import ids  # noqa: E402
from labaudit.core.canonical import canonical_bytes  # noqa: E402
from labaudit.core.clock import FixedClock, rfc3339  # noqa: E402
from labaudit.core.digest import Digest  # noqa: E402
from labaudit.evidence.observation import Unenforced  # noqa: E402
from labaudit.evidence.observe import observe_trial  # noqa: E402
from labaudit.evidence.trial_facts import SandboxFacts, TrialFacts  # noqa: E402
from labaudit.evidence.trial_record import artifact_lines, build_trial_record  # noqa: E402
from labaudit.grading.grades import grade_trial  # noqa: E402
from labaudit.planning.schedule import PlannedTrial, TrialPlanner  # noqa: E402
from labaudit.records.ids import Ids  # noqa: E402
from labaudit.records.resolved import ResolvedExperiment  # noqa: E402
from labaudit.store import atomic  # noqa: E402
from labaudit.store.event_log import EventLog, LogIdentity  # noqa: E402
from labaudit.store.lab_folder import LabFolder  # noqa: E402
from labaudit.store.run_folder import RunFolder, TrialFolder  # noqa: E402
from tests.make_run import START, RunPlan, resolved_document  # noqa: E402

LOST_EVERY = 997
SECOND = {"name": "tokens", "type": "continuous", "direction": "lower", "source": "harness"}


def synthesise(folder: Path, trials: int, *, processes: int = 1, events: int = 6) -> RunFolder:
    """A lab in `folder/.lab` with one run that waits for everything after its last trial."""
    lab = LabFolder(folder / ".lab")
    keys = ensure_keys(lab)
    tasks = [f"task-{number:06d}" for number in range(max(1, trials // 2))]
    dataset = b"".join(canonical_bytes({"id": task, "prompt": "Greet", "expected": "Hello"}) + b"\n" for task in tasks)
    document = plan(dataset, len(tasks))
    digest = Digest.of_json(document)
    run = lab.new_run(ids.run_id(START, digest))
    atomic.write_json(run.resolved, document)
    atomic.write_bytes(run.resolved_digest, str(digest).encode())
    run.artifacts.put(dataset, "application/jsonl")
    for variant in document["variants"]:
        atomic.write_json(run.variant(variant["id"]), variant)
    schedule = TrialPlanner.plan(ResolvedExperiment.from_json(document), digest, tasks)
    atomic.write_lines(run.schedule, [planned.as_json() for planned in schedule])
    sign_resolve_link(run, keys.signing)
    portions = [(run.path, document, schedule[start::processes], events) for start in range(processes)]
    if processes == 1:
        write_portion(portions[0])
    else:
        with multiprocessing.Pool(processes) as pool:
            pool.map(write_portion, portions, chunksize=1)
    return run


def plan(dataset: bytes, tasks: int) -> dict[str, Any]:
    """The resolved experiment: two variants, one binary and one continuous metric."""
    document = resolved_document(dataset, RunPlan(tasks=tasks, with_sbom=False))
    document["metrics"].append(SECOND)
    document["analysis_plan"]["secondary"] = [SECOND["name"]]
    return document


def write_portion(portion: tuple[Path, dict[str, Any], list[PlannedTrial], int]) -> None:
    """Some of a run's trials, one after the other."""
    path, document, schedule, events = portion
    run, resolved, digest = RunFolder(path), ResolvedExperiment.from_json(document), Digest.of_json(document)
    for planned in schedule:
        Trial(run, resolved, digest, planned).write(events)


class Trial:
    """One invented trial."""

    def __init__(self, run: RunFolder, resolved: ResolvedExperiment, digest: Digest, planned: PlannedTrial) -> None:
        self.run, self.resolved, self.digest, self.planned = run, resolved, digest, planned
        self.folder: TrialFolder = run.trial(planned.trial_id)
        self.ids: dict[str, Any] = {
            "run_id": run.run_id,
            "trial_id": planned.trial_id,
            "variant_id": planned.variant_id,
            "task_id": planned.task_id,
            "repl_idx": planned.repl_idx,
        }
        self.lost = planned.index % LOST_EVERY == LOST_EVERY - 1
        self.chance = random.Random(planned.trial_id)
        self.outcome = None if self.lost else ("success" if self.chance.random() < 0.7 else "failure")
        self.clock = FixedClock(START + timedelta(seconds=planned.index), timedelta(milliseconds=7))
        self.references: dict[str, str] = {}

    def write(self, events: int) -> None:
        """All of its files, the record last."""
        started = rfc3339(self.clock.now())
        for name, document in self.documents():
            atomic.write_json(self.folder.path / name, document, durable=False)
        if not self.lost:
            atomic.write_bytes(self.folder.stdout, f"greeting {self.planned.task_id}\n".encode(), durable=False)
        self.log(events)
        names = Ids.from_json(self.ids)
        status = "lost" if self.lost else "completed"
        facts = TrialFacts(names, 1, str(self.digest), status, self.outcome)  # type: ignore[arg-type]
        graded = grade_trial(observe_trial(self.folder, self.resolved, facts))
        atomic.write_bytes(self.folder.grades, graded.to_bytes(), durable=False)
        lines: list[object] = list(artifact_lines(self.run.artifacts, self.references))
        atomic.write_lines(self.folder.artifacts, lines, durable=False)
        record = build_trial_record(
            self.folder,
            self.run.artifacts,
            ids=names,
            index=self.planned.index,
            attempt=1,
            status=status,
            outcome=self.outcome,
            resolved=self.resolved,
            resolved_digest=self.digest,
            started_at=started,
            ended_at=rfc3339(self.clock.now()),
            evidence_origin="local",
        )
        atomic.write_bytes(self.folder.trial_record, record.to_bytes(), durable=False)

    def documents(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Names and contents of the JSON files that a trial leaves."""
        if not self.lost:
            success, tokens = int(self.outcome == "success"), self.chance.randrange(200, 4000)
            yield "trial_input.json", {"schema_version": "trial_input_v1", "ids": self.ids}
            yield "trial_output.json", {
                "schema_version": "trial_output_v1", "ids": self.ids, "outcome": self.outcome,
                "metrics": {"tokens": tokens},
            }  # fmt: skip
            yield "metrics.json", {
                "schema_version": "metrics_v1", "ids": self.ids, "outcome": self.outcome,
                "metrics": {"success": success, "tokens": tokens},
                "sources": {"success": "evaluator:exact", "tokens": "harness"},
                "missing": {}, "self_reported": ["tokens"],
            }  # fmt: skip
        unenforced = (Unenforced("out_mb", "the engine has no size-limited tmpfs"),)
        yield "state_inventory.json", {
            "schema_version": "state_inventory_v1", "ids": self.ids,
            "sanitization_profile": self.resolved.design.sanitization_profile, "integration_level": "cli_basic",
            "mounts": [{"name": "out", "path": "/out", "writable": True}],
            "network": {
                "mode_requested": "none", "mode_effective": "none", "enforcement_effective": "docker_none",
                "bypass_risk": "none", "egress_self_test": {"performed": False, "cases": []},
            },
            "harness_identity": {"exec_digest": self.resolved.runtime.harness.exec_digest},
            "violations": {"state_leak": False, "profile_invariant_violation": False},
            "ext": SandboxFacts("docker", "lost" if self.lost else "exited", unenforced).as_ext(),
        }  # fmt: skip

    def log(self, events: int) -> None:
        """The event log with its head, and a payload for some of its events."""
        identity = LogIdentity(**self.ids, attempt=1, resolved_digest=str(self.digest))
        log = EventLog(self.folder.events, identity, clock=self.clock)
        log.append("trial.started")
        if self.lost:
            log.append("attempt.lost", payload_ref=self.payload({"reason": "the sandbox went away"}))
        else:
            for number in range(events):
                reference = self.payload({"step": number, "trial": self.planned.trial_id}) if number % 3 == 0 else None
                log.append("harness.output", step_index=number, payload_ref=reference)
        log.seal(self.folder.events_head, durable=False)

    def payload(self, value: dict[str, object]) -> str:
        """A stored payload's reference."""
        reference = self.run.artifacts.put(canonical_bytes(value), "application/json", durable=False)
        self.references[reference] = "event payload"
        return reference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True, help="A folder; the run stands in its .lab/runs/.")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--events", type=int, default=6, help="Events per trial besides the first and the last.")
    options = parser.parse_args()
    started = time.perf_counter()
    run = synthesise(options.out, options.trials, processes=options.processes, events=options.events)
    print(run.path)
    print(f"{options.trials:,} trials in {time.perf_counter() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
