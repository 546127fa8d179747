"""Made-up runs for tests of the analysis: a resolved experiment, an inclusion table and trial files, nothing more.

Each trial is given as a `Trial`; what it does not say is as in an ordinary run. Files have the names and shapes that a
real run writes; no sandbox is involved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import Digest
from labaudit.core.strict_json import parse_json
from labaudit.records.document_rules import check
from labaudit.records.resolved import ResolvedExperiment
from labaudit.records.schema_registry import LINE_SCHEMAS, validate
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder, TrialFolder
from tests.make_run import RunPlan, resolved_document

SUCCESS = {"name": "success", "type": "binary", "direction": "higher", "source": "evaluator:exact"}
COST = {"name": "cost", "type": "continuous", "direction": "lower", "source": "harness"}


@dataclass(frozen=True)
class Trial:
    """One scheduled trial and what it left."""

    variant: str
    task: str
    repl: int = 0
    metrics: Mapping[str, Any] | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    status: str = "included"
    outcome: str = "success"
    attempts: int = 1
    origin: str = "local"
    worker: str | None = None
    started: int = 0
    output: Mapping[str, Any] | bytes | None = None
    hooks: Iterable[Mapping[str, Any]] | None = None
    network: Iterable[Mapping[str, Any]] | None = None
    inventory: Mapping[str, Any] | None = None
    artifacts: Iterable[Mapping[str, Any]] | None = None

    @property
    def trial_id(self) -> str:
        return f"{self.variant}.{self.task}.r{self.repl}"


def resolved_of(
    tasks: Iterable[Mapping[str, Any]],
    *,
    variants: Iterable[str] = ("drop",),
    metrics: Iterable[Mapping[str, Any]] = (SUCCESS,),
    replications: int = 1,
    **plan: Any,
) -> tuple[dict[str, Any], bytes]:
    """The resolved document and the dataset's bytes; `plan` replaces keys of the analysis plan."""
    dataset = b"".join(canonical_bytes(dict(task)) + b"\n" for task in tasks)
    document = resolved_document(dataset, RunPlan(tasks=dataset.count(b"\n"), replications=replications))
    document["variants"] = [{"id": name, "bindings": {}} for name in ("base", *variants)]
    document["baseline"] = {"id": "base", "bindings": {}}
    document["variant_plan"] = list(variants)
    document["metrics"] = [dict(metric) for metric in metrics]
    document["analysis_plan"] |= {"primary": [next(iter(document["metrics"]))["name"]], **plan}
    return document, dataset


def write_run(folder: Path, trials: Iterable[Trial], *, run_id: str = "run-x", **options: Any) -> RunFolder:
    """A run folder, not sealed, ready to be analysed."""
    trials = list(trials)
    names = list(dict.fromkeys(trial.task for trial in trials))
    tasks = options.pop("tasks", [{"id": name} for name in names])
    document, dataset = resolved_of(tasks, **options)
    ResolvedExperiment.from_json(document)
    run = RunFolder(folder)
    atomic.write_json(run.resolved, document, durable=False)
    atomic.write_bytes(run.resolved_digest, str(Digest.of_json(document)).encode(), durable=False)
    run.artifacts.put(dataset, "application/jsonl")
    rows = [_row(index, trial) for index, trial in enumerate(trials)]
    counts = {name: sum(row["status"] == name for row in rows) for name in ("included", "excluded", "lost")}
    inclusion = {"schema_version": "inclusion_v1", "run_id": run_id, "rows": rows}
    atomic.write_json(run.inclusion, inclusion | {"totals": {"scheduled": len(rows), **counts}}, durable=False)
    for index, trial in enumerate(trials):
        _write_trial(run.trial(trial.trial_id), run_id, index, trial)
    return run


def _row(index: int, trial: Trial) -> dict[str, Any]:
    return {
        "index": index, "trial_id": trial.trial_id, "variant_id": trial.variant, "task_id": trial.task,
        "repl_idx": trial.repl, "status": trial.status, "rule": trial.status, "reason": "",
        "outcome": None if trial.status == "lost" else trial.outcome, "attempts": trial.attempts,
    }  # fmt: skip


def _write_trial(folder: TrialFolder, run_id: str, index: int, trial: Trial) -> None:
    ids = {
        "run_id": run_id, "trial_id": trial.trial_id, "variant_id": trial.variant, "task_id": trial.task,
        "repl_idx": trial.repl,
    }  # fmt: skip
    record = {
        "schema_version": "trial_record_v1", "ids": ids, "index": index, "attempt": trial.attempts,
        "attempts": trial.attempts, "status": "lost" if trial.status == "lost" else "completed",
        "outcome": None if trial.status == "lost" else trial.outcome, "evidence_origin": trial.origin,
        "started_at": f"2026-11-18T09:{trial.started // 60:02}:{trial.started % 60:02}.000000Z",
        "ended_at": f"2026-11-18T10:{trial.started // 60:02}:{trial.started % 60:02}.000000Z",
        "image_digest": "sha256:" + "5a" * 32, "files": [],
    }  # fmt: skip
    _json(folder.trial_record, record)
    if trial.metrics is not None:
        document = {
            "schema_version": "metrics_v1", "ids": ids, "outcome": trial.outcome, "metrics": dict(trial.metrics),
            "sources": {}, "missing": dict(trial.missing), "self_reported": [],
        }  # fmt: skip
        _json(folder.metrics, document)
    if isinstance(trial.output, bytes):
        atomic.write_bytes(folder.trial_output, trial.output, durable=False)
    elif trial.output is not None:
        _json(folder.trial_output, {"schema_version": "trial_output_v1", "ids": ids, **trial.output})
    if trial.worker is not None:
        _json(folder.receipt, {"worker_id": trial.worker})
    if trial.inventory is not None:
        _json(folder.state_inventory, dict(trial.inventory))
    for path, lines in (
        (folder.harness_events, trial.hooks),
        (folder.network_events, trial.network),
        (folder.artifacts, trial.artifacts),
    ):
        if lines is not None:
            atomic.write_lines(path, [dict(line) for line in lines], durable=False)


def _json(path: Path, value: Any) -> None:
    atomic.write_json(path, value, durable=False)


def binary_pairs(baseline: Iterable[int], variant: Iterable[int], name: str = "success") -> list[Trial]:
    """One replicate per task, in the order given."""
    made = []
    for number, (first, second) in enumerate(zip(baseline, variant, strict=True)):
        made.append(Trial("base", f"t{number:04}", metrics={name: first}))
        made.append(Trial("drop", f"t{number:04}", metrics={name: second}))
    return made


def hook(seq: int, event_type: str, **more: Any) -> dict[str, Any]:
    """A hook event with what the analysis looks at."""
    return {"event_type": event_type, "seq": seq, "ts": "2026-11-18T09:00:00.000000Z", **more}


def tool_call(seq: int, name: str, status: str = "ok", **more: Any) -> dict[str, Any]:
    """A finished tool call."""
    return hook(seq, "tool_call_end", tool={"name": name}, outcome={"status": status}, **more)


def broken_files(run: RunFolder) -> list[str]:
    """What the JSON files of a run's analysis break of their schemas and numbered rules."""
    found = []
    for name, path in (
        ("analysis_summary_v1", run.summary),
        ("comparisons_v1", run.comparisons),
        ("exemplars_v1", run.exemplars),
        ("suspects_v1", run.suspects),
        ("paired_diff_v1", run.paired_diffs),
    ):
        data = path.read_bytes()
        for part in data.splitlines() if name in LINE_SCHEMAS else [data]:
            value = parse_json(part)
            found += [f"{path.name} {one}" for one in (*validate(name, value), *check(name, value))]
    return found
