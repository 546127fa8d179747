"""run_record.json: one execution of a task, with its trace."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from labaudit.records.base import NULL_IS_A_VALUE, Record
from labaudit.records.fields import Count, JsonObject, Many, NotNegative, Text, Timestamp


class RunError(Record):
    """Why the run failed, and in which step."""

    message: str
    step: Text | None = None
    stack: str | None = None


class RunMetrics(Record):
    """Milliseconds, tokens and dollars."""

    latency: NotNegative
    tokens: Count | None = None
    cost: NotNegative | None = None


class TraceEvent(Record):
    """One thing that happened."""

    timestamp: Timestamp
    level: Literal["info", "debug", "warn", "error"]
    step: Text | None = None
    event: Text
    data: Annotated[Any, NULL_IS_A_VALUE] = None


class StepSummary(Record):
    """How one step of a scenario went."""

    stepId: Text  # noqa: N815 - the contract's own spelling
    stepName: Text  # noqa: N815
    status: Literal["completed", "failed", "skipped"]
    latency: NotNegative
    output: Annotated[Any, NULL_IS_A_VALUE] = None
    error: str | None = None


class RunProvenance(Record):
    """Which runner executed, in which version, with which configuration."""

    runnerId: Text  # noqa: N815
    runnerVersion: Text  # noqa: N815
    config: JsonObject


class RunRecord(Record):
    """The execution of one task."""

    id: Text
    taskId: Text  # noqa: N815
    taskType: Literal["atomic", "scenario"]  # noqa: N815
    status: Literal["pending", "running", "completed", "failed"]
    output: Annotated[Any, NULL_IS_A_VALUE] = None
    error: RunError | None = None
    metrics: RunMetrics
    trace: Many[TraceEvent]
    steps: Many[StepSummary] | None = None
    startedAt: Timestamp  # noqa: N815
    completedAt: Timestamp | None = None  # noqa: N815
    provenance: RunProvenance
