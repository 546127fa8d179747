"""A task's own `metadata.timeout` and the experiment's limit to the seconds that its trial may take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labaudit.contracts.rules.finding import is_number
from labaudit.contracts.rules.scenario_rules import check_scenario
from labaudit.contracts.rules.task_rules import check_task
from labaudit.contracts.scenarios.executor import is_scenario

START_GRACE_S = 2.0
"""A sandbox and its interpreter take time to start, and a harness that knows the timeout ends the task itself and says
which step it was; the runner ends what is still there this much later."""


def trial_seconds_for(task: Mapping[str, Any], limit_s: float) -> float:
    """The tighter of the experiment's limit and the task's timeout.

    Only a task that keeps the AtomicTask or ScenarioTask contract has a timeout in milliseconds: in a benchmark's own
    shape the same words may mean anything.
    """
    metadata = task.get("metadata")
    timeout_ms = metadata.get("timeout") if isinstance(metadata, Mapping) else None
    if timeout_ms is None or not is_number(timeout_ms) or timeout_ms < 0:
        return limit_s
    findings = check_scenario(task) if is_scenario(task) else check_task(task)
    if any(finding.severity == "error" for finding in findings):
        return limit_s
    return min(limit_s, float(timeout_ms) / 1000 + START_GRACE_S)
