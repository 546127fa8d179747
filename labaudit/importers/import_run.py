"""Another tool's results to a run folder, unsealed and ready to finish; in order, on one page.

    read -> one row per trial -> totals counted again -> plan -> artifacts -> trials -> report

The pipeline finishes it like any other run: inclusion, analysis, grades, attestations. What the files claim and rows
deny stands in `import_report.json`, which the first page of the site shows.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from labaudit.core import ids
from labaudit.core.clock import Clock, SystemClock, rfc3339
from labaudit.errors import BadInput
from labaudit.importers.duplicates import merge_duplicates
from labaudit.importers.foreign_json import plain
from labaudit.importers.plan import ImportPlan, plan_import
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.readers import reader_of
from labaudit.importers.results import ForeignResults, ImportFinding
from labaudit.importers.shape_notes import (
    leave_out_nameless,
    leave_out_silent_metrics,
    note_replicates,
    note_task_sets,
    note_verdicts,
)
from labaudit.importers.source_files import SourceFiles
from labaudit.importers.totals import total_findings
from labaudit.importers.trial_files import NOT_OBSERVED, ImportContext, write_trial
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder

# Up to here a flush per file is cheaper than one of everything that the system has not yet written.
FLUSHED_ONE_BY_ONE = 100
_ORDER = {"mismatch": 0, "caution": 1, "note": 2}


@dataclass(frozen=True)
class ImportedRun:
    """An unsealed run and what a reader should know about it."""

    run: RunFolder
    results: ForeignResults
    plan: ImportPlan
    findings: tuple[ImportFinding, ...]


def read_results(
    format_name: str, paths: Sequence[Path], files: SourceFiles, options: ReadOptions | None = None
) -> ForeignResults:
    """What the files say, one row per trial; nothing is written."""
    reader = reader_of(format_name)
    for path in paths:
        if not path.exists():
            raise BadInput("there is no such file or folder", where=str(path))
    results = reader(paths, files, options or ReadOptions())
    leave_out_nameless(results)
    merge_duplicates(results)
    note_task_sets(results)
    note_verdicts(results)
    note_replicates(results)
    leave_out_silent_metrics(results)
    return results


def import_results(
    format_name: str,
    paths: Sequence[Path],
    lab: LabFolder,
    *,
    options: ReadOptions | None = None,
    baseline: str | None = None,
    clock: Clock | None = None,
    before_trials: Callable[[RunFolder], object] = lambda run: None,
) -> ImportedRun:
    """Reads results and writes them as a run of the lab: everything but what finishing adds.

    `before_trials` gets the run when its plan stands and no trial is written yet; the pipeline signs the plan there.
    """
    clock = clock or SystemClock()
    files = SourceFiles()
    results = read_results(format_name, paths, files, options)
    plan = plan_import(results, baseline=baseline)
    now = clock.now()
    run = lab.new_run(ids.run_id(now, plan.digest))
    try:
        asked = options_document(format_name, files, options or ReadOptions(), baseline)
        findings = _write(run, lab, results, plan, files, asked, now, clock, before_trials)
    except BaseException:
        # Half an import is no run, and nothing is lost with it: the files are still where they were.
        shutil.rmtree(run.path, ignore_errors=True)
        raise
    return ImportedRun(run, results, plan, tuple(findings))


def _write(
    run: RunFolder,
    lab: LabFolder,
    results: ForeignResults,
    plan: ImportPlan,
    files: SourceFiles,
    asked: dict[str, Any],
    now: datetime,
    clock: Clock,
    before_trials: Callable[[RunFolder], object],
) -> list[ImportFinding]:
    """Plan, artifacts, trials and report, in this order; returns the findings, worst first."""
    references = {source.name: _store(run, source.path, source.content_type, source.sha256) for source in files.read}
    run.artifacts.put(plan.dataset, "application/jsonl")
    for variant in plan.resolved.variants:
        atomic.write_bytes(run.variant(variant.id), variant.to_bytes())
    atomic.write_lines(run.schedule, [planned.as_json() for planned, _ in plan.schedule])
    atomic.write_bytes(run.resolved, plan.resolved.to_bytes())
    atomic.write_bytes(run.resolved_digest, str(plan.digest).encode())
    registered = {"run_id": run.run_id, "resolved_digest": str(plan.digest), "registered_at": rfc3339(now)}
    atomic.append_line(lab.registry, {**registered, "trials": len(plan.schedule)})
    before_trials(run)
    few = len(plan.schedule) <= FLUSHED_ONE_BY_ONE
    context = ImportContext(run, plan, results, references, rfc3339(now), clock, durable=few)
    for planned, row in plan.schedule:
        write_trial(context, planned, row)
    if not few:
        # One flush for all of them: until the manifest is there, a crash costs a repeated import and nothing else.
        os.sync()
    findings = all_findings(results)
    report = report_document(results, plan, findings, files, references, rfc3339(now))
    atomic.write_json(run.import_report, {**report, "asked": asked})
    return findings


def all_findings(results: ForeignResults) -> list[ImportFinding]:
    """What the reader, the shape of the rows and the totals give, worst first."""
    return sorted([*results.findings, *total_findings(results)], key=lambda finding: _ORDER[finding.severity])


def options_document(
    format_name: str, files: SourceFiles, options: ReadOptions, baseline: str | None
) -> dict[str, Any]:
    """How the import was asked for, so that it can be done again from the files that the run keeps.

    Of where the files lay only those folder names are kept that the format's reader takes names from.
    """
    above: dict[str, list[str]] = {}
    for root, label in files.roots:
        parts = [part for part in root.parts[-3:-1] if part != root.anchor] if format_name == "swebench" else []
        above[label] = ["results"] if format_name == "terminal-bench" and root.parent.name == "results" else parts
    return {
        "only": list(options.only),
        # A list, because the first metric is the primary one and an object would lose the order.
        "map": [{"field": field, "column": column} for field, column in options.mapping.items()],
        "reader": options.reader,
        "baseline": baseline,
        "roots": [{"label": label, "above": above[label]} for _, label in files.roots],
    }


def report_document(
    results: ForeignResults,
    plan: ImportPlan,
    findings: Sequence[ImportFinding],
    files: SourceFiles,
    references: dict[str, str],
    imported_at: str,
) -> dict[str, Any]:
    """`import_report.json`: where the rows come from, what was published about them, and what does not fit."""
    causes: Counter[str] = Counter()
    for _, row in plan.schedule:
        causes.update(f"{name}: {cause}" for name, cause in row.missing.items())
    outcomes = Counter(row.outcome for _, row in plan.schedule)
    document = {
        "schema_version": "import_report_v1",
        "format": results.format,
        "format_version": results.format_version,
        "tool": {"name": results.tool.name, "version": results.tool.version},
        "imported_at": imported_at,
        "counts": {
            "trials": len(plan.schedule),
            "variants": len(plan.variant_ids),
            "tasks": plan.resolved.dataset.count,
            "outcomes": dict(sorted(outcomes.items())),
            "missing": dict(sorted(causes.items())),
        },
        "variants": [{"id": plan.variant_ids[label], "label": label} for label in sorted(plan.variant_ids)],
        "sources": [
            {"name": source.name, "size": source.size, "sha256": source.sha256, "ref": references[source.name]}
            for source in files.read
        ],
        "totals": [total.as_json() for total in results.totals],
        "findings": [finding.as_json() for finding in findings],
        "not_observed": [{"what": what, "reason": reason} for what, reason in NOT_OBSERVED],
    }
    cleaned = plain(document)
    assert isinstance(cleaned, dict)
    return cleaned


def _store(run: RunFolder, path: Path, content_type: str, sha256: str) -> str:
    reference = f"artifact://sha256/{sha256}"
    if run.artifacts.has(reference):
        return reference
    stored = run.artifacts.put(atomic.read_bytes(path), content_type, durable=False)
    if stored != reference:
        raise BadInput("changed while it was being imported", where=str(path), hint="import it again")
    return stored
