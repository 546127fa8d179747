"""An imported run to the same import done again, from the files that the run keeps: do its rows follow from them?

Anyone who has the run can do this. The kept files are laid out under their names in a folder of their own, read by the
same reader, and what comes out is compared with the plan, the trials and the report of the run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labaudit.core.canonical import canonical_bytes
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, Contradiction
from labaudit.importers.foreign_json import mapping, plain, rows
from labaudit.importers.import_run import all_findings, read_results
from labaudit.importers.plan import ImportPlan, plan_import
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.results import ForeignResults
from labaudit.importers.source_files import SourceFiles
from labaudit.importers.trial_files import metrics_document
from labaudit.records.ids import Ids
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder

Json = dict[str, Any]
# What could not be read was not kept either, so a second import cannot find it again.
_ABOUT_OTHER_FILES = ("trial_without_result", "unreadable_file")


def recheck_import(run: RunFolder) -> list[str]:
    """Sentences: where the run differs from what its own files give; empty when it follows from them."""
    if not run.import_report.is_file():
        raise BadInput("is no imported run", where=str(run.path), hint="it has no import_report.json")
    report = parse_object(atomic.read_bytes(run.import_report), where=str(run.import_report))
    asked = mapping(report.get("asked"))
    options = ReadOptions(
        only=tuple(str(pattern) for pattern in asked.get("only") or ()),
        mapping={str(entry.get("field")): str(entry.get("column")) for entry in rows(asked.get("map"))},
        reader=str(asked.get("reader", "raw")),
    )
    with tempfile.TemporaryDirectory(prefix="labaudit-recheck-") as folder:
        roots = _lay_out(run, report, Path(folder))
        files = SourceFiles()
        for root in roots:
            files.label(root)
        try:
            results = read_results(str(report.get("format")), roots, files, options)
            plan = plan_import(results, baseline=asked.get("baseline"))
        except BadInput as error:
            return [f"the kept files give no import any more: {error.what}"]
    return list(_differences(run, report, results, plan))


def _lay_out(run: RunFolder, report: Json, folder: Path) -> list[Path]:
    """Writes every kept file under its name; a name that would leave the folder is refused."""
    roots: dict[str, Path] = {}
    for number, root in enumerate(rows(mapping(report.get("asked")).get("roots"))):
        label = str(root.get("label"))
        above = [str(part) for part in root.get("above") or ()]
        if any(part in ("", ".", "..") or "/" in part or "\0" in part for part in (label, *above)):
            raise BadInput("names a root that is no folder's name", where=str(run.import_report))
        roots[label] = folder.joinpath(str(number), *above, label)
    for source in rows(report.get("sources")):
        label, _, below = str(source.get("name")).partition("/")
        parts = below.split("/") if below else []
        if label not in roots or any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise BadInput("names a source outside of its roots", where=str(run.import_report))
        path = roots[label].joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(run.artifacts.get(str(source.get("ref"))))
    for label, place in roots.items():
        if not place.exists():
            raise Contradiction(f"no kept file belongs to {label}", where=str(run.import_report))
    return list(roots.values())


def _differences(run: RunFolder, report: Json, results: ForeignResults, plan: ImportPlan) -> Iterator[str]:
    if atomic.read_bytes(run.resolved) != plan.resolved.to_bytes():
        yield "resolved_experiment.json is not the plan that the kept files give"
    schedule = b"".join(canonical_bytes(planned.as_json()) + b"\n" for planned, _ in plan.schedule)
    if atomic.read_bytes(run.schedule) != schedule:
        yield "schedule.jsonl does not list the trials that the kept files give"
        return
    run_id = None
    for planned, row in plan.schedule:
        trial = run.trial(planned.trial_id)
        stored = atomic.read_bytes(trial.metrics)
        run_id = run_id or str(mapping(parse_object(stored).get("ids")).get("run_id"))
        ids = Ids(
            run_id=run_id,
            trial_id=planned.trial_id,
            variant_id=planned.variant_id,
            task_id=planned.task_id,
            repl_idx=planned.repl_idx,
        )
        if stored != canonical_bytes(metrics_document(results, row, ids)):
            yield f"trials/{planned.trial_id}/metrics.json is not what the kept files give"
        told = parse_object(atomic.read_bytes(trial.imported))
        if (told.get("original_id"), told.get("facts")) != (row.original_id, plain(dict(row.facts))):
            yield f"trials/{planned.trial_id}/imported.json is not what the kept files give"
    totals = [total.as_json() for total in results.totals]
    if canonical_bytes(report.get("totals")) != canonical_bytes(plain(totals)):
        yield "import_report.json has other totals than the kept files give"
    now = [finding.as_json() for finding in all_findings(results)]
    if _comparable(rows(report.get("findings"))) != _comparable(rows(plain(now))):
        yield "import_report.json has other findings than the kept files give"


def _comparable(findings: list[Json]) -> bytes:
    return canonical_bytes([finding for finding in findings if finding.get("code") not in _ABOUT_OTHER_FILES])
