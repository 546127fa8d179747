"""A Harbor job folder to foreign rows: job config, lock and result; a folder per trial with its own result.

    <job>/config.json  lock.json  result.json
    <job>/<trial>/result.json  agent/trajectory.json  verifier/reward.txt|reward.json

A variant is an agent with its model. The verifier's own reward file is compared with the reward in the trial's result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from labaudit.errors import BadInput
from labaudit.importers.foreign_json import count_of, mapping, metric_value, plain, rows, text_of
from labaudit.importers.moments import seconds_between
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.results import (
    Cause,
    ForeignResults,
    ForeignTrial,
    MetricDeclaration,
    Outcome,
    PublishedTotal,
    Tool,
    Value,
    VariantInfo,
)
from labaudit.importers.source_files import SourceFiles
from labaudit.importers.totals import check_count, check_mean, check_sum

REWARD = "reward"
_USAGE = {"tokens_in": "n_input_tokens", "tokens_out": "n_output_tokens", "cost_usd": "cost_usd"}
Json = dict[str, Any]


def read_harbor(paths: Sequence[Path], files: SourceFiles, options: ReadOptions) -> ForeignResults:
    """All jobs at the paths."""
    results = ForeignResults("harbor", None, Tool("harbor"), [], title="Harbor")
    versions: set[str] = set()
    for root in paths:
        for job in _jobs(root, files):
            _read_job(job, root, files, options, results, versions)
    if not results.trials:
        raise results.nothing("there are no Harbor trials here", paths, "give a job folder with result.json")
    results.tool = Tool("harbor", ", ".join(sorted(versions)) or None)
    if len(versions) > 1:
        said = "The jobs were run by different versions of the tool: " + ", ".join(sorted(versions)) + "."
        results.note("mixed_versions", "caution", said, count=len(versions))
    _declare(results)
    return results


def _jobs(root: Path, files: SourceFiles) -> list[Path]:
    """Folders whose children are trials: the grandparents of files called result.json that tell of a trial."""
    found = {path.parent.parent for path, _ in files.below(root) if path.name == "result.json" and path.parent != root}
    # A job's own result.json stands one level higher; its folder's parent is no job unless trials stand there too.
    jobs = sorted(folder for folder in found if any((child / "result.json").is_file() for child in _children(folder)))
    return [job for job in jobs if any(_is_trial_folder(child) for child in _children(job))] or [root]


def _children(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())


def _is_trial_folder(folder: Path) -> bool:
    return (folder / "result.json").is_file() and not any(
        (child / "result.json").is_file() for child in _children(folder)
    )


def _read_job(
    job: Path, root: Path, files: SourceFiles, options: ReadOptions, results: ForeignResults, versions: set[str]
) -> None:
    prefix = _name(job, root, files)
    documents = {
        name: _optional(job / name, f"{prefix}/{name}", files, results) for name in ("config.json", "lock.json")
    }
    version = text_of(mapping(documents["lock.json"].get("harbor")).get("version"))
    versions.update([version] if version else [])
    trials: list[ForeignTrial] = []
    for folder in _children(job):
        if (folder / "result.json").is_file():
            name = f"{prefix}/{folder.name}"
            document = _optional(folder / "result.json", f"{name}/result.json", files, results)
            if text_of(document.get("task_name")):
                trial = _trial(document, folder, name, files, results)
                trials += [trial] if options.wants(trial.variant) else []
            elif document:
                said = f"{name}/result.json names no task; the trial is left out."
                results.note("row_without_name", "mismatch", said, where=name)
        else:
            said = f"{prefix}/{folder.name} has no result.json: the trial never ended."
            results.note("trial_without_result", "mismatch", said, where=f"{prefix}/{folder.name}")
    result = _optional(job / "result.json", f"{prefix}/result.json", files, results)
    if result and not options.only:
        results.totals.extend(_totals(result, trials, f"{prefix}/result.json"))
    results.trials.extend(trials)


def _name(folder: Path, root: Path, files: SourceFiles) -> str:
    below = folder.relative_to(root).as_posix()
    return files.label(root) if below == "." else f"{files.label(root)}/{below}"


def _optional(path: Path, name: str, files: SourceFiles, results: ForeignResults) -> Json:
    if not path.is_file():
        return {}
    try:
        return mapping(files.json(path, name))
    except BadInput as error:
        results.note("unreadable_file", "mismatch", f"{name} cannot be read: {error.what}.", where=name)
        return {}


def _trial(document: Json, folder: Path, name: str, files: SourceFiles, results: ForeignResults) -> ForeignTrial:
    agent = mapping(document.get("agent_info"))
    model = mapping(agent.get("model_info"))
    label = " / ".join(part for part in (text_of(agent.get("name")), text_of(model.get("name"))) if part) or "agent"
    known = {"agent_version": plain(agent.get("version")), "provider": plain(model.get("provider"))}
    results.variants.setdefault(label, VariantInfo(label, {k: v for k, v in known.items() if v is not None}))
    task_id = str(text_of(document.get("task_name")))
    checksum = text_of(document.get("task_checksum"))
    results.tasks.setdefault(task_id, {"checksum": checksum} if checksum else {})
    rewards = mapping(mapping(document.get("verifier_result")).get("rewards"))
    exception = mapping(document.get("exception_info"))
    metrics, missing = _measures(document, rewards, bool(exception))
    primary = metrics.get(REWARD if REWARD in rewards or not rewards else next(iter(rewards)))
    outcome: Outcome = (
        ("error" if exception else "missing") if primary is None else "success" if primary == 1 else "failure"
    )
    sources = (f"{name}/result.json", *_extra_files(folder, name, rewards, files, results))
    started, ended = text_of(document.get("started_at")), text_of(document.get("finished_at"))
    said = text_of(exception.get("exception_message")) or text_of(exception.get("exception_type"))
    tokens = [metrics.get("tokens_in"), metrics.get("tokens_out")]
    counts = [count for count in tokens if isinstance(count, int)]
    return ForeignTrial(
        variant=label,
        task_id=task_id,
        original_id=text_of(document.get("id")) or name,
        order=(text_of(document.get("trial_name")) or name,),
        outcome=outcome,
        metrics=metrics,
        missing=missing,
        started_at=started,
        ended_at=ended,
        seconds=seconds_between(started, ended),
        error=(said or "the verifier gave no reward")[:2000] if outcome in ("error", "missing") else None,
        tokens=sum(counts) if len(counts) == 2 else None,
        sources=sources,
        facts={
            "trial_name": plain(document.get("trial_name")),
            "eval_key": _eval_key(document),
            "rewards": plain(rewards),
            **({"exception_type": plain(exception.get("exception_type"))} if exception else {}),
        },
    )


def _eval_key(document: Json) -> str:
    """The name under which the job's result counts this trial."""
    agent = mapping(document.get("agent_info"))
    model = text_of(mapping(agent.get("model_info")).get("name"))
    parts = (text_of(agent.get("name")), model, text_of(document.get("source")) or "adhoc")
    return "__".join(part for part in parts if part)


def _measures(document: Json, rewards: Json, broken: bool) -> tuple[dict[str, Value], dict[str, Cause]]:
    metrics: dict[str, Value] = {}
    missing: dict[str, Cause] = {}
    for key, reward in rewards.items():
        value, cause = metric_value(reward)
        if isinstance(value, bool | int | float):
            metrics[str(key)] = int(value) if value in (0, 1) else value
        else:
            missing[str(key)] = cause or "invalid"
    if not rewards:
        missing[REWARD] = "error" if broken else "missing"
    usage = mapping(document.get("agent_result"))
    for metric, key in _USAGE.items():
        count = usage.get(key) if metric == "cost_usd" else count_of(usage.get(key))
        value, cause = metric_value(count)
        if isinstance(value, int | float) and value >= 0:
            metrics[metric] = value
        else:
            missing[metric] = "absent" if cause in (None, "missing") else cause
    seconds = seconds_between(text_of(document.get("started_at")), text_of(document.get("finished_at")))
    if seconds is None:
        missing["duration_s"] = "absent"
    else:
        metrics["duration_s"] = seconds
    return metrics, missing


def _extra_files(folder: Path, name: str, rewards: Json, files: SourceFiles, results: ForeignResults) -> Iterator[str]:
    """The trajectory and the verifier's output; the latter must say what the result says."""
    for below in ("agent/trajectory.json", "verifier/reward.txt", "verifier/reward.json"):
        path = folder / below
        if not path.is_file():
            continue
        where = f"{name}/{below}"
        try:
            data = files.bytes(path, where)
        except BadInput as error:
            results.note("unreadable_file", "mismatch", f"{where} cannot be read: {error.what}.", where=where)
            continue
        yield where
        if below == "verifier/reward.txt" and not _same_reward(data, rewards):
            said = f"{where} says {data[:40].decode('utf-8', 'replace').strip()!r}, the trial's result says {rewards}."
            results.note("reward_differs", "mismatch", said[:300], where=where)


def _same_reward(data: bytes, rewards: Json) -> bool:
    try:
        return float(data.decode("ascii")) == rewards.get(REWARD)
    except ValueError:
        return False


def _totals(result: Json, trials: Sequence[ForeignTrial], where: str) -> Iterator[PublishedTotal]:
    stats = mapping(result.get("stats"))
    broken = sum(1 for trial in trials if "exception_type" in trial.facts)
    checks = [
        check_count("n_total_trials", where, result.get("n_total_trials"), len(trials)),
        check_count("n_completed_trials", where, stats.get("n_completed_trials", stats.get("n_trials")), len(trials)),
        check_count("n_errored_trials", where, stats.get("n_errored_trials", stats.get("n_errors")), broken),
    ]
    for metric, key in _USAGE.items():
        values = [trial.metrics.get(metric) for trial in trials]
        numbers = [float(value) for value in values if isinstance(value, int | float)]
        checks.append(check_sum(key, where, stats.get(key), numbers))
    for key, group in mapping(stats.get("evals")).items():
        own = [trial for trial in trials if trial.facts.get("eval_key") == key]
        rewards = [_number(trial.metrics.get(REWARD)) for trial in own]
        figures = mapping(group)
        judged = sum(bool(trial.facts.get("rewards")) for trial in own)
        failed = sum("exception_type" in trial.facts for trial in own)
        checks.append(check_count(f"n_trials of {key}", where, figures.get("n_trials"), judged))
        checks.append(check_count(f"n_errors of {key}", where, figures.get("n_errors"), failed))
        means = [metric["mean"] for metric in rows(figures.get("metrics")) if "mean" in metric]
        checks += [check_mean(f"mean of {key}", where, mean, rewards) for mean in means]
    yield from (check for check in checks if check is not None)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _declare(results: ForeignResults) -> None:
    keys = Counter(key for trial in results.trials for key in mapping(trial.facts.get("rewards")))
    names = [REWARD, *(key for key, _ in keys.most_common() if key != REWARD)] if keys else [REWARD]
    for name in names:
        values = [trial.metrics[name] for trial in results.trials if name in trial.metrics]
        binary = all(value in (0, 1) for value in values)
        results.metrics.append(MetricDeclaration(name, "binary" if binary else "continuous"))
    for name in ("duration_s", *_USAGE):
        results.metrics.append(MetricDeclaration(name, "continuous", "lower"))
