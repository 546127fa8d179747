"""Entry points of the group `labaudit.modules` to modules by task type.

Any installed distribution may add one; `[project.entry-points."labaudit.modules"]` names an object with `type`,
`version`, `runner` and `evaluator` (docs/module-guide.md). The evaluators run outside the sandbox, in this process.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from labaudit.contracts.scenarios.module import Evaluator, Module, Runner
from labaudit.contracts.scenarios.scoring import SCENARIO_EVALUATOR, SCENARIO_METRICS
from labaudit.errors import BadInput

GROUP = "labaudit.modules"


@cache
def installed_modules() -> dict[str, Module]:
    """Every registered module by the type of task it runs."""
    return load_modules(entry_points(group=GROUP))


def load_modules(points: Iterable[EntryPoint]) -> dict[str, Module]:
    """The modules behind these entry points; BadInput names the one that cannot be used."""
    modules: dict[str, Module] = {}
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        module = _load(point)
        if module.type in modules and modules[module.type] is not module:
            raise BadInput(
                f"two modules run tasks of type {module.type!r}",
                where=f"entry point {point.name} = {point.value}",
                hint="uninstall one of them, or give its tasks another type",
            )
        modules[module.type] = module
    return modules


def evaluators_by_type(modules: dict[str, Module]) -> dict[str, Evaluator]:
    """The evaluator of each task type."""
    return {kind: module.evaluator for kind, module in modules.items()}


def runners_by_type(modules: dict[str, Module]) -> dict[str, Runner]:
    """The runner of each task type."""
    return {kind: module.runner for kind, module in modules.items()}


def declared_metrics(modules: dict[str, Module]) -> dict[str, frozenset[str]]:
    """Evaluator id to the metrics it declares, the scenario's own evaluator included (rule C5)."""
    declared = {module.evaluator.id: frozenset(module.evaluator.metrics) for module in modules.values()}
    return {**declared, SCENARIO_EVALUATOR: frozenset(SCENARIO_METRICS)}


def _load(point: EntryPoint) -> Module:
    where = f"entry point {point.name} = {point.value}"
    try:
        module = point.load()
    except Exception as error:
        # An entry point is foreign code: whatever importing it raises, the user needs to know which one it was.
        raise BadInput(f"the module cannot be loaded: {type(error).__name__}: {error}", where=where) from error
    if not isinstance(module, Module):
        sound = isinstance(getattr(module, "runner", None), Runner) and isinstance(
            getattr(module, "evaluator", None), Evaluator
        )
        if not sound or not isinstance(getattr(module, "type", None), str):
            raise BadInput(
                "the object is no module", where=where, hint="it needs type, version, runner and evaluator"
            )
        return Module(module.type, str(getattr(module, "version", "unknown")), module.runner, module.evaluator)
    return module
