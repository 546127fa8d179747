"""Inspect logs (`.eval` archives and `.json` documents) to foreign rows: one per sample and epoch.

    header.json                    status, eval spec, results, stats
    samples/<id>_epoch_<n>.json    one sample with its scores, error, limit, usage
    _journal/...                   what was written while the log was still open

A log whose end was never written is read from its journal, and that is said. A log may say "success" over samples that
all failed: outcomes come from samples, the status is only compared with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.importers.eval_zip import EvalZip
from labaudit.importers.foreign_json import (
    count_of,
    id_text,
    mapping,
    not_objects,
    plain,
    read_foreign_json,
    rows,
    text_of,
)
from labaudit.importers.inspect_scores import declare, score_number, scorers_of, totals_of
from labaudit.importers.moments import seconds_between
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.results import Cause, ForeignResults, ForeignTrial, Outcome, Tool, Value, VariantInfo
from labaudit.importers.source_files import SourceFiles

_SETTINGS = ("task", "task_version", "task_args", "model", "model_args", "revision", "solver", "solver_args")
SUCCESS = "success"
Json = dict[str, Any]


@dataclass
class InspectLog:
    """One log: its header and its samples."""

    name: str
    header: Json
    samples: list[Json] = field(default_factory=list)

    @property
    def spec(self) -> Json:
        """The `eval` part of the header."""
        return mapping(self.header.get("eval"))

    @property
    def model(self) -> str:
        """The model's name."""
        return text_of(self.spec.get("model")) or "unknown-model"

    @property
    def task(self) -> str:
        """The task's name."""
        return text_of(self.spec.get("task")) or "unknown-task"

    @property
    def identity(self) -> str:
        """What two tellings of one evaluation share, such as a log and its copy in the other form."""
        parts = (text_of(self.spec.get("run_id")), text_of(self.spec.get("task_id")))
        return text_of(self.spec.get("eval_id")) or ("/".join(map(str, parts)) if all(parts) else self.name)


def read_inspect(paths: Sequence[Path], files: SourceFiles, options: ReadOptions) -> ForeignResults:
    """All logs at the paths."""
    results = ForeignResults("inspect", None, Tool("inspect_ai"), [], title="Inspect")
    logs = _read_logs(paths, files, options, results)
    labels = _labels(logs)
    logs = [log for log in logs if options.wants(labels[log.name])]
    several = len({log.task for log in logs}) > 1
    scorers: list[str] = []
    names: dict[tuple[str, str, int], str] = {}
    # Logs judged by different scorers have one thing in common: whether the sample was right by its own first scorer.
    unlike = len({tuple(scorers_of(log.header, log.samples)[:1]) for log in logs}) > 1
    for log in logs:
        label = labels[log.name]
        bindings = {key: plain(log.spec[key]) for key in _SETTINGS if log.spec.get(key)}
        results.variants.setdefault(label, VariantInfo(label, bindings))
        own = scorers_of(log.header, log.samples)
        scorers += [name for name in own if name not in scorers]
        results.trials.extend(_trials(log, label, own, several, unlike, names, results))
        results.totals.extend(totals_of(log.header, log.samples, log.name))
        _note_log(log, results)
    if not results.trials:
        raise results.nothing("there are no Inspect samples here", paths, "give .eval or .json logs")
    declare(results, [*([SUCCESS] if unlike or not scorers else []), *scorers])
    _note_versions(logs, results)
    return results


def _read_logs(
    paths: Sequence[Path], files: SourceFiles, options: ReadOptions, results: ForeignResults
) -> list[InspectLog]:
    """Every log once: a copy of a log is no second submission."""
    logs: list[InspectLog] = []
    seen: dict[str, str] = {}
    for path, name in _log_files(paths, files):
        try:
            log = (
                _with_inspect(path, name, files)
                if options.reader == "inspect"
                else read_log(path, name, files, results)
            )
        except BadInput as error:
            results.note("unreadable_file", "mismatch", f"{name} cannot be read: {error.what}.", where=name)
            continue
        if log is None:
            continue
        first = seen.setdefault(files.sha256(name), name)
        if first != name:
            said = f"{name} has the same bytes as {first}; it counts once."
            results.note("duplicate_file", "mismatch", said, where=name)
            continue
        logs.append(log)
    return logs


def read_log(path: Path, name: str, files: SourceFiles, results: ForeignResults) -> InspectLog | None:
    """One log by the raw reader; None for a JSON file that is no log."""
    data = files.bytes(path, name)
    if path.suffix == ".eval":
        return _from_archive(data, name, results)
    document = read_foreign_json(data, name)
    if not isinstance(document, dict) or not isinstance(document.get("eval"), dict):
        return None
    lost = not_objects(document.get("samples"))
    if lost:
        said = f"{lost} sample(s) of {name} are no JSON objects; they are left out."
        results.note("unreadable_sample", "mismatch", said, where=name, count=lost)
    return InspectLog(name, document, rows(document.get("samples")))


def _log_files(paths: Sequence[Path], files: SourceFiles) -> Iterator[tuple[Path, str]]:
    for path in paths:
        if path.is_dir():
            yield from ((file, name) for file, name in files.below(path) if file.suffix in (".eval", ".json"))
        else:
            yield path, files.label(path)


def _from_archive(data: bytes, name: str, results: ForeignResults) -> InspectLog:
    archive = EvalZip(data, name)
    if archive.repeated:
        said = f"{name} holds {archive.repeated} entries under a name that is taken; the last one is read."
        results.note("repeated_entry", "caution", said, where=name, count=archive.repeated)
    names = archive.names()
    if "header.json" in names:
        header = mapping(read_foreign_json(archive.read("header.json"), f"{name}!header.json"))
    elif "_journal/start.json" in names:
        header = mapping(read_foreign_json(archive.read("_journal/start.json"), f"{name}!_journal/start.json"))
        results.note("log_not_finished", "mismatch", f"{name} was never finished: it has no header.", where=name)
    else:
        raise BadInput("is no Inspect log: it has no header and no journal", where=name)
    samples, damaged = [], []
    for entry in names:
        if entry.startswith("samples/") and entry.endswith(".json"):
            try:
                samples.append(mapping(read_foreign_json(archive.read(entry), f"{name}!{entry}")))
            except BadInput as error:
                damaged.append(f"{error.where} cannot be read: {error.what}.")
    if damaged:
        said = damaged[0] if len(damaged) == 1 else f"{len(damaged)} samples of {name} cannot be read."
        results.note("unreadable_sample", "mismatch", said, where=name, count=len(damaged), examples=tuple(damaged))
    return InspectLog(name, header, samples)


def _with_inspect(path: Path, name: str, files: SourceFiles) -> InspectLog:
    """The same log by the tool's own reader."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        hint = "install the extra labaudit[inspect], or read with --reader raw"
        raise EnvironmentLacks("inspect_ai is not installed", hint=hint) from error
    files.bytes(path, name)
    try:
        document = read_foreign_json(read_eval_log(str(path)).model_dump_json().encode(), name)
    except BadInput:
        raise
    except Exception as error:
        # A foreign reader: whatever it raises on a damaged file, the user needs to know which file it was.
        raise BadInput(f"inspect_ai does not read it: {type(error).__name__}: {error}", where=name) from error
    return InspectLog(name, mapping(document), rows(mapping(document).get("samples")))


def _labels(logs: Sequence[InspectLog]) -> dict[str, str]:
    """Log to variant: its model; two logs of one model and task are two variants, unless they tell one evaluation."""
    labels: dict[str, str] = {}
    known: dict[tuple[str, str, str], str] = {}
    taken: dict[tuple[str, str], int] = {}
    for log in logs:
        key = log.identity, log.model, log.task
        if key not in known:
            number = taken[log.model, log.task] = taken.get((log.model, log.task), 0) + 1
            known[key] = log.model if number == 1 else f"{log.model} #{number}"
        labels[log.name] = known[key]
    return labels


def _trials(
    log: InspectLog,
    label: str,
    scorers: Sequence[str],
    several: bool,
    unlike: bool,
    names: dict[tuple[str, str, int], str],
    results: ForeignResults,
) -> Iterator[ForeignTrial]:
    """`names` keeps the id under which a sample of one evaluation was first told, for all logs."""
    for position, sample in enumerate(log.samples):
        sample_id = id_text(sample.get("id"))
        if sample_id is None:
            said = f"{log.name}: sample {position} has no id and is left out."
            results.note("sample_without_id", "mismatch", said, where=log.name)
            continue
        task_id = f"{log.task}/{sample_id}" if several else sample_id
        known = {"input": plain(sample.get("input"), text=4000), "target": plain(sample.get("target"), text=4000)}
        results.tasks.setdefault(task_id, {key: value for key, value in known.items() if value is not None})
        trial = _trial(log, label, sample, task_id, scorers, unlike or not scorers)
        # A sample and epoch is one trial of an evaluation, whatever uuids two tellings of it carry.
        key = log.identity, task_id, trial.facts["epoch"]
        yield replace(trial, original_id=names.setdefault(key, trial.original_id))


def _trial(
    log: InspectLog, label: str, sample: Json, task_id: str, scorers: Sequence[str], with_success: bool
) -> ForeignTrial:
    metrics: dict[str, Value] = {}
    missing: dict[str, Cause] = {}
    error = sample.get("error")
    scores = mapping(sample.get("scores"))
    for name in scorers:
        value, cause = score_number(scores[name]) if name in scores else (None, "absent")
        if value is not None:
            metrics[name] = int(value) if value in (0.0, 1.0) else value
        else:
            missing[name] = "error" if error and cause == "absent" else cause or "invalid"
    started, ended = text_of(sample.get("started_at")), text_of(sample.get("completed_at"))
    seconds = _seconds(sample.get("total_time"))
    seconds = seconds if seconds is not None else seconds_between(started, ended)
    tokens = _tokens(sample)
    for name, measured in (("duration_s", seconds), ("tokens", tokens)):
        if measured is not None:
            metrics[name] = measured
        else:
            missing[name] = "absent"
    epoch = count_of(sample.get("epoch")) or 1
    limit = text_of(mapping(sample.get("limit")).get("type"))
    outcome = _outcome(metrics.get(scorers[0]) if scorers else None, bool(error))
    if with_success and outcome in ("success", "failure"):
        metrics[SUCCESS] = int(outcome == "success")
    elif with_success:
        missing[SUCCESS] = missing.get(scorers[0], "absent") if scorers else "error" if error else "absent"
    return ForeignTrial(
        variant=label,
        task_id=task_id,
        original_id=text_of(sample.get("uuid")) or f"{log.identity}/{task_id}/epoch-{epoch}",
        order=(epoch, log.name),
        outcome=outcome,
        metrics=metrics,
        missing=missing,
        started_at=started,
        ended_at=ended,
        seconds=seconds,
        error=_error_text(error) if outcome in ("error", "missing") else None,
        tokens=tokens,
        sources=(log.name,),
        facts={
            "epoch": epoch,
            "scores": plain(scores, text=2000, depth=6),
            **({"limit": limit} if limit else {}),
            **({"error": plain(error, text=4000, depth=4)} if error else {}),
            "events": len(rows(sample.get("events"))),
        },
    )


def _outcome(primary: Value | None, broken: bool) -> Outcome:
    if primary is None:
        return "error" if broken else "missing"
    return "success" if primary == 1 else "failure"


def _error_text(error: object) -> str:
    message = text_of(mapping(error).get("message")) if isinstance(error, dict) else text_of(error)
    return (message or "the sample has no score")[:2000]


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e12 else None


def _tokens(sample: Json) -> int | None:
    counts = [count_of(mapping(usage).get("total_tokens")) for usage in mapping(sample.get("model_usage")).values()]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _note_log(log: InspectLog, results: ForeignResults) -> None:
    status = text_of(log.header.get("status")) or "unknown"
    broken = [str(sample.get("id")) for sample in log.samples if sample.get("error")]
    if status == "success" and log.samples and len(broken) == len(log.samples):
        said = f"{log.name} says status success, and every one of its {len(broken)} samples failed with an error."
        results.note("status_contradicts_rows", "mismatch", said, where=log.name, count=len(broken))
    elif status == "success" and broken:
        said = f"{log.name} says status success, and {len(broken)} of its {len(log.samples)} samples have an error."
        results.note("status_hides_errors", "mismatch", said, where=log.name, count=len(broken), examples=tuple(broken))
    elif status != "success":
        results.note("log_status", "mismatch", f"{log.name} says status {status}.", where=log.name)
    if not log.samples:
        results.note("log_without_samples", "caution", f"{log.name} holds no samples.", where=log.name)


def _note_versions(logs: Sequence[InspectLog], results: ForeignResults) -> None:
    versions = sorted({str(mapping(log.spec.get("packages")).get("inspect_ai", "unknown")) for log in logs})
    formats = sorted({str(log.header.get("version", "unknown")) for log in logs})
    results.tool = Tool("inspect_ai", versions[0] if len(versions) == 1 else ", ".join(versions))
    results.format_version = ", ".join(formats)
    for what, found in (("versions of the tool", versions), ("versions of the log format", formats)):
        if len(found) > 1:
            said = f"The logs have different {what}: {', '.join(found)}."
            results.note("mixed_versions", "caution", said, count=len(found))
