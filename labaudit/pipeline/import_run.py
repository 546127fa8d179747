"""Another tool's results to a sealed and signed run: read, write as trials, then finish like any other run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labaudit.attest.seal import sign_resolve_link
from labaudit.attest.trust_store import ensure_keys
from labaudit.errors import BadInput
from labaudit.importers.import_run import ImportedRun, import_results
from labaudit.importers.protocol import ReadOptions
from labaudit.pipeline.run import Progress, RunRequest, RunResult, finish_run
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder


@dataclass(frozen=True)
class ImportResult:
    """The sealed run, and what the import found out about the files."""

    run_id: str
    result: RunResult
    imported: ImportedRun


def import_run(
    format_name: str,
    paths: Sequence[Path],
    lab: LabFolder,
    request: RunRequest,
    progress: Progress,
    *,
    options: ReadOptions | None = None,
    baseline: str | None = None,
    out: Path | None = None,
) -> ImportResult:
    """From foreign files to a sealed run; `out` is where its folder goes instead of the lab's runs."""
    if out is not None and out.exists():
        raise BadInput("is there already", where=str(out), hint="name another folder with --out, or remove it")
    keys = ensure_keys(lab, key_path=request.key) if request.sign else None
    progress.stage(f"reading {format_name} results")
    imported = import_results(
        format_name,
        paths,
        lab,
        options=options,
        baseline=baseline,
        clock=request.clock,
        before_trials=lambda run: sign_resolve_link(run, keys.signing) if keys is not None else None,
    )
    run, run_id = imported.run, imported.run.run_id
    progress.stage(f"run {run_id}: {len(imported.plan.schedule)} trials imported")
    result = finish_run(run, imported.plan.resolved, keys, request.clock, progress)
    if out is not None:
        result = replace(result, run=_move(run, out))
    return ImportResult(run_id, result, imported)


def _move(run: RunFolder, out: Path) -> RunFolder:
    """A sealed run may stand anywhere: no file in it holds its place."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(run.path, out)
    except OSError as error:
        raise atomic.explain(error, out) from error
    return RunFolder(out)
