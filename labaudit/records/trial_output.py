"""trial_output.json: what a harness says came out of its trial."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from labaudit.records.base import NULL_IS_A_VALUE, Record
from labaudit.records.fields import JsonObject, Many, Outcome, Scalar, Text
from labaudit.records.ids import Ids


class ArtifactDeclaration(Record):
    """A file under /out that the harness wants kept."""

    path: Text
    logical_name: str | None = None
    mime_type: str | None = None


class HarnessError(Record):
    """Why the harness could not finish."""

    error_type: str | None = None
    message: str | None = None
    stack: str | None = None


class TrialOutput(Record):
    """Outcome, answer, metrics and artifacts, all of them the harness's own statement."""

    schema_version: Literal["trial_output_v1"] = "trial_output_v1"
    ids: Ids
    outcome: Outcome
    answer: Annotated[Any, NULL_IS_A_VALUE] = None
    metrics: dict[str, Scalar] | None = None
    artifacts: Many[ArtifactDeclaration] | None = None
    error: HarnessError | None = None
    ext: JsonObject | None = None
