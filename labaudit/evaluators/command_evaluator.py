"""An evaluator that is a program: its own sandbox, no network, the trial's `/out` read-only.

It finds `evaluation_input.json` (ids, task, trial_output) at the path in LABAUDIT_EVALUATION_INPUT and prints one JSON
value on stdout: the metric itself, or an object `{"metrics": {...}, "explanation": "..."}`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from labaudit.core.strict_json import parse_json
from labaudit.engines.protocol import Engine, Limits, NetworkSpec, ReadOnlyMount, SandboxLabels, SandboxSpec
from labaudit.errors import BadInput, LabauditError
from labaudit.evaluators.verdict import Verdict
from labaudit.records.resolved import ResolvedEvaluator
from labaudit.store import atomic

MAX_STDOUT = 1 << 20
DEFAULT_SECONDS = 60
INPUT_NAME = "evaluation_input.json"


def evaluate_by_command(
    config: ResolvedEvaluator,
    *,
    engine: Engine,
    image: str,
    labels: SandboxLabels,
    limits: Limits,
    collected: Path,
    source: Path | None,
    document: Mapping[str, object],
) -> list[Verdict]:
    """Runs the evaluator's command once; whatever goes wrong is a missing value with its cause."""
    spec = SandboxSpec(
        image=image,
        command=tuple(config.command or ()),
        labels=replace(labels, trial_id=f"{labels.trial_id}.eval-{config.id}"),
        env={"LABAUDIT_EVALUATION_INPUT": f"/in/{INPUT_NAME}", "PYTHONDONTWRITEBYTECODE": "1"},
        harness=source,
        read_only=(ReadOnlyMount(collected, "/out", "out"),),
        limits=limits,
        network=NetworkSpec("none"),
        timeout_s=config.timeout_seconds or DEFAULT_SECONDS,
    )
    sandbox = engine.open(spec)
    try:
        atomic.write_json(Path(sandbox.host.input) / INPUT_NAME, dict(document), durable=False)
        sandbox.start()
        result = sandbox.wait()
    except LabauditError as error:
        return [Verdict.missing(config.metric, "error", f"evaluator {config.id} could not run: {error.what}")]
    finally:
        sandbox.remove()
    if result.timed_out:
        return [Verdict.missing(config.metric, "error", f"evaluator {config.id} ran into its timeout")]
    if result.exit_code != 0:
        said = f"evaluator {config.id} ended with exit code {result.exit_code}"
        return [Verdict.missing(config.metric, "error", said)]
    if result.stdout.truncated or result.stdout.total > MAX_STDOUT:
        said = f"evaluator {config.id} printed more than {MAX_STDOUT} bytes"
        return [Verdict.missing(config.metric, "invalid", said)]
    return read_verdicts(config, result.stdout.head + result.stdout.tail)


def read_verdicts(config: ResolvedEvaluator, printed: bytes) -> list[Verdict]:
    """What the command printed, as verdicts."""
    try:
        value = parse_json(printed.strip() or b"null", where=f"evaluator {config.id}")
    except BadInput as error:
        return [Verdict.missing(config.metric, "invalid", f"evaluator {config.id} printed no JSON: {error.what}")]
    if not isinstance(value, dict):
        return [_verdict(config, config.metric, value, "")]
    metrics = value.get("metrics")
    explanation = str(value.get("explanation", ""))
    if not isinstance(metrics, dict):
        return [Verdict.missing(config.metric, "invalid", f'evaluator {config.id} printed an object without "metrics"')]
    verdicts = [_verdict(config, name, item, explanation) for name, item in sorted(metrics.items())]
    if config.metric not in metrics:
        verdicts.append(Verdict.missing(config.metric, "absent", f"evaluator {config.id} did not give {config.metric}"))
    return verdicts


def _verdict(config: ResolvedEvaluator, metric: str, value: object, explanation: str) -> Verdict:
    if isinstance(value, float) and not math.isfinite(value):
        return Verdict.missing(metric, "nan", f"evaluator {config.id} gave no finite number")
    if isinstance(value, (bool, int, float, str)):
        return Verdict(metric, value, None, explanation or f"given by evaluator {config.id}")
    if value is None:
        return Verdict.missing(metric, "missing", explanation or f"evaluator {config.id} gave null")
    return Verdict.missing(metric, "invalid", f"evaluator {config.id} gave an array or object for {metric}")
