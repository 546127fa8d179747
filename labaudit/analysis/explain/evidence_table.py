"""All trials' evidence to aligned diffs and to columns of features, one task at a time.

Event streams are large and needed only while their task is looked at; what stays is one number per trial and feature,
and the configuration facts. Tasks may be split over processes: chunks keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labaudit.analysis.explain.diff_builder import DiffBuilder
from labaudit.analysis.explain.trial_evidence import TrialEvidence, read_evidence
from labaudit.analysis.trials.rows import TrialRow
from labaudit.core.canonical import canonical_bytes
from labaudit.store.run_folder import RunFolder

SOURCES = ("framework_events", "hooks", "traces", "network_proxy", "imported")


@dataclass
class EvidenceTable:
    """Per trial id: features, configuration facts and which sources are usable; per variant: diff lines."""

    features: dict[str, dict[str, float]] = field(default_factory=dict)
    configuration: dict[str, dict[str, str]] = field(default_factory=dict)
    sources: dict[str, frozenset[str]] = field(default_factory=dict)
    diff_lines: dict[str, list[bytes]] = field(default_factory=dict)

    def coverage(self, source: str, trial_ids: Sequence[str]) -> int:
        """How many of these trials have usable evidence of this kind."""
        return sum(1 for trial_id in trial_ids if source in self.sources.get(trial_id, frozenset()))


def read_evidence_table(
    run: RunFolder, rows: Sequence[TrialRow], baseline: str, variants: Sequence[str], *, processes: int = 1
) -> EvidenceTable:
    """The evidence of every trial that left any, and a diff line for every pair of trials of one task and replicate."""
    cells: dict[tuple[str, int], list[TrialRow]] = {}
    for row in rows:
        cells.setdefault((row.task_id, row.repl_idx), []).append(row)
    ordered = [cells[key] for key in sorted(cells)]
    table = EvidenceTable(diff_lines={variant: [] for variant in variants})
    for part in _parts(run.path, ordered, baseline, tuple(variants), processes):
        table.features.update(part.features)
        table.configuration.update(part.configuration)
        table.sources.update(part.sources)
        for variant, lines in part.diff_lines.items():
            table.diff_lines[variant].extend(lines)
    return table


def _parts(
    path: Path, cells: list[list[TrialRow]], baseline: str, variants: tuple[str, ...], processes: int
) -> Iterator[EvidenceTable]:
    if processes <= 1 or len(cells) < 64:
        yield _read_cells(path, cells, baseline, variants)
        return
    from concurrent.futures import ProcessPoolExecutor

    size = -(-len(cells) // processes)
    chunks = [cells[start : start + size] for start in range(0, len(cells), size)]
    with ProcessPoolExecutor(processes) as pool:
        count = len(chunks)
        yield from pool.map(_read_cells, [path] * count, chunks, [baseline] * count, [variants] * count)


def _read_cells(path: Path, cells: list[list[TrialRow]], baseline: str, variants: tuple[str, ...]) -> EvidenceTable:
    run = RunFolder(path)
    table = EvidenceTable(diff_lines={variant: [] for variant in variants})
    for cell in cells:
        reference: TrialEvidence | None = None
        # The baseline first, then one variant at a time: two streams are in memory, however many variants there are.
        for row in sorted(cell, key=lambda row: row.variant_id != baseline):
            if row.status == "lost":
                continue
            evidence = read_evidence(run.trial(row.trial_id), row, run.artifacts)
            _remember(table, evidence)
            if row.variant_id == baseline:
                reference = evidence
            elif reference is not None and row.variant_id in table.diff_lines:
                diff = DiffBuilder.build(reference.task_id, reference, evidence)
                table.diff_lines[row.variant_id].append(canonical_bytes(diff))
    return table


def _remember(table: EvidenceTable, evidence: TrialEvidence) -> None:
    table.features[evidence.trial_id] = dict(evidence.features)
    table.configuration[evidence.trial_id] = dict(evidence.configuration)
    usable = {
        evidence.recorded_by: evidence.framework.usable,
        "hooks": evidence.hooks.usable,
        "traces": evidence.traces.usable,
        "network_proxy": evidence.network.usable,
    }
    table.sources[evidence.trial_id] = frozenset(name for name, is_usable in usable.items() if is_usable)
