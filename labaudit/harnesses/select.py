"""The spec's harness mode to the driver that speaks it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from labaudit.harnesses.cli_harness import CliHarness
from labaudit.harnesses.protocol import Harness
from labaudit.records.resolved import ResolvedExperiment


def select_harness(resolved: ResolvedExperiment) -> Harness:
    """A fresh driver for one attempt; an SDK program is started like any command and reports through its hooks."""
    if resolved.runtime.harness.mode == "acp":
        from labaudit.harnesses.acp.harness import AcpHarness

        return AcpHarness()
    return CliHarness()


def harness_environment(resolved: ResolvedExperiment) -> dict[str, str]:
    """Variables that a kind of harness needs for its evidence; the author's own go over them."""
    if resolved.runtime.harness.mode != "acp":
        return {}
    from labaudit.harnesses.acp.trial.plan import agent_environment

    return agent_environment(resolved.runtime.harness)


def check_harness(resolved: ResolvedExperiment, tasks: Iterable[Mapping[str, object]]) -> None:
    """BadInput, `where` a dotted path of the spec, when the harness could not be driven with some task."""
    if resolved.runtime.harness.mode == "acp":
        from labaudit.harnesses.acp.trial.plan import check_templates

        check_templates(resolved.runtime.harness, resolved.variants, tasks)
