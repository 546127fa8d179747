"""metrics.json: a trial's measured values, each with where it came from."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import Many, MetricSource, MissingCause, Outcome, Scalar, Text
from labaudit.records.ids import Ids


class Metrics(Record):
    """Values by name; `missing` says why one is not there, `self_reported` which the harness says of itself."""

    schema_version: Literal["metrics_v1"] = "metrics_v1"
    ids: Ids
    outcome: Outcome
    metrics: dict[str, Scalar]
    sources: dict[str, MetricSource]
    missing: dict[str, MissingCause]
    self_reported: Many[Text]
