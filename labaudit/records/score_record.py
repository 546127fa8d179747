"""One line of score_records.jsonl: an evaluator's value for one metric of one run."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from labaudit.records.base import Record
from labaudit.records.fields import JsonObject, Many, Text, Timestamp

ScoreTarget = Annotated[str, StringConstraints(pattern=r"^((final|global)$|step:[\s\S])")]


class ScoreEvidence(Record):
    """Why the score is what it is."""

    explanation: str | None = None
    snippets: Many[str] | None = None
    alignment: JsonObject | None = None


class ScoreRecord(Record):
    """A metric's value for the final output, the whole run, or one step."""

    id: Text
    runId: Text  # noqa: N815 - the contract's own spelling
    metric: Text
    value: bool | int | float | str
    target: ScoreTarget
    evidence: ScoreEvidence | None = None
    evaluatorId: Text  # noqa: N815
    createdAt: Timestamp  # noqa: N815
