"""A run's folder to everything under its `analysis/`: tables, comparisons, exemplars, suspects, diffs, summary.

`compute` reads and calculates; `write` puts the files into a folder. The same trial files give the same bytes, on one
process or more, whatever the order of folders on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labaudit.analysis.clusters import read_clusters
from labaudit.analysis.documents import comparisons_document, summary_document
from labaudit.analysis.effects.families import Compared
from labaudit.analysis.effects.plan import off_plan_settings, settings_of
from labaudit.analysis.explain.evidence_table import EvidenceTable, read_evidence_table
from labaudit.analysis.explain.exemplars import find_exemplars
from labaudit.analysis.explain.suspects import find_suspects
from labaudit.analysis.paired_rows import paired_lines, paired_parquet
from labaudit.analysis.trials.parquet import trials_parquet
from labaudit.analysis.trials.rows import TrialRow, read_rows
from labaudit.analysis.trials.table import table_of_rows
from labaudit.core.digest import Digest
from labaudit.core.strict_json import parse_json, parse_object
from labaudit.errors import BadInput
from labaudit.records.analysis_summary import AnalysisSummary
from labaudit.records.comparisons import Comparisons
from labaudit.records.resolved import ResolvedExperiment
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder


@dataclass(frozen=True)
class Analysis:
    """All that is known about a run's results."""

    resolved: ResolvedExperiment
    rows: Sequence[TrialRow]
    compared: Compared
    evidence: EvidenceTable
    comparisons: Comparisons
    exemplars: Mapping[str, Any]
    suspects: Mapping[str, Any]
    summary: AnalysisSummary


class AnalysisRunner:
    """Carries out the plan of one run."""

    def __init__(self, run: RunFolder, *, processes: int = 1, off_plan: tuple[str, str] | None = None) -> None:
        """`off_plan` names a baseline and a variant that the plan does not compare: estimates without p-values."""
        self.run_folder = run
        self.processes = processes
        self.off_plan = off_plan

    def run(self) -> Analysis:
        """Reads the trial files and computes everything; writes nothing."""
        resolved, digest = read_resolved(self.run_folder)
        rows = read_rows(self.run_folder, processes=self.processes)
        settings = settings_of(resolved)
        if self.off_plan is not None:
            settings = off_plan_settings(settings, *self.off_plan)
        table = table_of_rows(rows, settings.metric_types)
        clusters, notes = read_clusters(self.run_folder, resolved, table.tasks)
        compared = Compared(table, settings, clusters)
        evidence = read_evidence_table(
            self.run_folder, rows, settings.baseline, settings.variants, processes=self.processes
        )
        exemplars = find_exemplars(compared)
        suspects = find_suspects(compared, rows, evidence)
        comparisons = comparisons_document(self._run_id(), str(digest), resolved, compared, rows, notes)
        by_status = Counter(str(one["status"]) for one in suspects["suspects"])
        shown = sum(len(group["exemplars"]) for group in exemplars["groups"])
        summary = summary_document(comparisons, resolved, compared, rows, by_status, shown)
        return Analysis(resolved, rows, compared, evidence, comparisons, exemplars, suspects, summary)

    def _run_id(self) -> str:
        """As recorded: a folder may be renamed."""
        inclusion = self.run_folder.inclusion
        if inclusion.is_file():
            recorded = parse_object(atomic.read_bytes(inclusion), where=str(inclusion)).get("run_id")
            if isinstance(recorded, str) and recorded:
                return recorded
        return self.run_folder.run_id


def read_resolved(run: RunFolder) -> tuple[ResolvedExperiment, Digest]:
    """The resolved experiment and the digest of its canonical form."""
    if not run.resolved.is_file():
        raise BadInput(
            f"has no {run.resolved.name}", where=str(run.path), hint="an analysis needs the plan that the run fixed"
        )
    value = parse_json(atomic.read_bytes(run.resolved), where=str(run.resolved))
    return ResolvedExperiment.from_json(value, where=str(run.resolved)), Digest.of_json(value)


def write_analysis(analysis: Analysis, target: RunFolder) -> list[Path]:
    """Writes the files of `analysis/` under `target`, the summary last; files of an earlier analysis are removed."""
    written = [
        _write(target.trials_table, trials_parquet(analysis.rows, analysis.compared.table)),
        _write_lines(target.paired_diffs, analysis.compared),
        _write(target.paired_diffs_parquet, paired_parquet(analysis.compared)),
    ]
    for variant, lines in analysis.evidence.diff_lines.items():
        written.append(_write(target.variant_diffs(variant), b"".join(line + b"\n" for line in lines)))
    for path, document in ((target.exemplars, analysis.exemplars), (target.suspects, analysis.suspects)):
        atomic.write_json(path, document)
        written.append(path)
    written.append(_write(target.comparisons, analysis.comparisons.to_bytes()))
    _remove_others(target.analysis, {*written, target.summary})
    written.append(_write(target.summary, analysis.summary.to_bytes()))
    return written


def _write(path: Path, data: bytes) -> Path:
    atomic.write_bytes(path, data)
    return path


def _write_lines(path: Path, compared: Compared) -> Path:
    with atomic.replacing(path) as stream:
        for block in paired_lines(compared):
            stream.write(block)
    return path


def _remove_others(folder: Path, kept: set[Path]) -> None:
    """What an interrupted earlier analysis left would otherwise be sealed with this one."""
    for path in sorted(folder.rglob("*")):
        if path not in kept and (path.is_file() or path.is_symlink()):
            path.unlink()


def analyse_run(run: RunFolder, *, processes: int = 1) -> Analysis:
    """See `labaudit.analysis.analyse_run`."""
    if run.sealed:
        raise BadInput(
            "the run is sealed and is never changed",
            where=str(run.path),
            hint="`labaudit analyze RUN` recomputes it and compares; --out writes elsewhere",
        )
    analysis = AnalysisRunner(run, processes=processes).run()
    write_analysis(analysis, run)
    return analysis
