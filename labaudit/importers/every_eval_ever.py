"""A run to Every Eval Ever JSON (schema 0.3.0): one document per variant with its scores and their uncertainty.

The scores are those of the run's own analysis. A metric that no trial of a variant has a value for is left out, since
the format has no way to say "missing"; how many values are missing stands in each score's details. Rows per instance
are not written: that format demands a verdict and a transcript of each, which a trial without a result does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from labaudit import __version__
from labaudit.core.clock import parse_rfc3339
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.importers.foreign_json import mapping, rows
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder

SCHEMA_VERSION = "0.3.0"
Relationship = Literal["first_party", "third_party", "collaborative", "other"]
Json = dict[str, Any]
# The format asks for both; a run does not know them.
_UNKNOWN_MODEL = {"deployment_type": "unknown", "model_availability": "unknown"}


@dataclass(frozen=True)
class Publisher:
    """Who hands the results on, and how they stand to the models."""

    organization: str
    relationship: Relationship = "other"


@dataclass(frozen=True)
class ExportedVariant:
    """One document, and the metrics that could not be in it."""

    variant_id: str
    document: Json
    left_out: tuple[str, ...]


def export_run(run: RunFolder, publisher: Publisher) -> Iterator[ExportedVariant]:
    """The documents of a sealed run, in the order of its variants; BadInput when it has no analysis or no seal."""
    if not run.sealed or not run.summary.is_file():
        raise BadInput("only a finished run can be exported", where=str(run.path), hint="labaudit resume finishes it")
    manifest = _read(run, "manifest")
    resolved, summary, grades = _read(run, "resolved"), _read(run, "summary"), _read(run, "grades")
    report = _read(run, "import_report") if run.import_report.is_file() else None
    for variant in rows(resolved.get("variants")):
        found = next((item for item in rows(summary.get("variants")) if _id(item) == variant["id"]), {})
        yield _variant(manifest, resolved, grades, report, variant, found, publisher)


def _read(run: RunFolder, name: str) -> Json:
    path = getattr(run, name)
    return parse_object(atomic.read_bytes(path), where=str(path))


def _id(item: Mapping[str, Any]) -> object:
    return item.get("variant_id", item.get("id"))


def _variant(
    manifest: Json,
    resolved: Json,
    grades: Json,
    report: Json | None,
    variant: Json,
    found: Json,
    publisher: Publisher,
) -> ExportedVariant:
    bindings = mapping(variant.get("bindings"))
    model = str(bindings.get("model_name") or bindings.get("model") or bindings.get("label") or variant["id"])
    retrieved = str(int(parse_rfc3339(manifest["created_at"]).timestamp()))
    kinds = {metric["name"]: metric for metric in rows(resolved.get("metrics"))}
    results, left_out = [], []
    for metric in rows(found.get("metrics")):
        if metric.get("mean") is None:
            left_out.append(str(metric.get("metric")))
        else:
            results.append(_result(resolved, kinds.get(str(metric["metric"]), {}), metric))
    tool = mapping(report.get("tool")) if report else {"name": "labaudit", "version": __version__}
    name = resolved["experiment"]["id"]
    document = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{name}/{model.replace('/', '_')}/{retrieved}",
        "retrieved_timestamp": retrieved,
        "source_metadata": {
            "source_name": resolved["experiment"]["name"],
            "source_type": "documentation" if report else "evaluation_run",
            "source_organization_name": publisher.organization,
            "evaluator_relationship": publisher.relationship,
            "additional_details": _details(manifest, grades, report),
        },
        "eval_library": {"name": str(tool.get("name")), "version": str(tool.get("version") or "unknown")},
        "model_info": {
            "name": model,
            "id": model,
            "additional_details": {**_UNKNOWN_MODEL, "variant_id": variant["id"]},
        },
        "evaluation_results": results,
    }
    return ExportedVariant(str(variant["id"]), document, tuple(left_out))


def _details(manifest: Json, grades: Json, report: Json | None) -> dict[str, str]:
    names = ("isolation", "replay", "interpretability", "comparability", "provenance")
    details = {f"labaudit_{name}": str(grades[name]["value"]) for name in names}
    details["labaudit_run_id"] = str(manifest["run_id"])
    details["labaudit_resolved_digest"] = str(manifest["resolved_digest"])
    details["labaudit_evidence"] = "imported" if report else "observed"
    if report:
        mismatches = sum(item.get("severity") == "mismatch" for item in rows(report.get("findings")))
        details["labaudit_import_mismatches"] = str(mismatches)
    return details


def _result(resolved: Json, kind: Json, metric: Json) -> Json:
    binary = kind.get("type") == "binary"
    config: Json = {
        "evaluation_description": f"{metric['metric']}, mean over trials with a value",
        "lower_is_better": kind.get("direction") == "lower",
        # The mean of a binary metric is a rate, so the published score is continuous between 0 and 1.
        "score_type": "continuous",
        # Null is the format's word for "not provided".
        "min_score": 0.0 if binary else None,
        "max_score": 1.0 if binary else None,
        "additional_details": {"trial_values": str(kind.get("type"))},
    }
    score: Json = {
        "score": metric["mean"],
        "details": {
            "values_missing": str(metric.get("missing", 0)),
            **{
                f"missing_{cause}": str(count)
                for cause, count in mapping(metric.get("missing_by_cause")).items()
                if count
            },
        },
    }
    error = metric.get("clustered_se")
    uncertainty: Json = {"num_samples": metric["valid"]} if isinstance(metric.get("valid"), int) else {}
    if isinstance(error, int | float):
        uncertainty["standard_error"] = {"value": error, "method": "clustered by task"}
    if uncertainty:
        score["uncertainty"] = uncertainty
    dataset = resolved["dataset"]
    return {
        "evaluation_name": f"{resolved['experiment']['id']}/{metric['metric']}",
        "source_data": {
            "dataset_name": dataset["path"],
            "source_type": "other",
            "additional_details": {"sha256": dataset["sha256"], "tasks": str(dataset["count"])},
        },
        "metric_config": config,
        "score_details": score,
    }
