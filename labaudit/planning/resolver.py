"""An experiment.yaml to its resolved spec: every name looked up, every default named with its reason, one digest.

Nothing is resolved again at run time; a run cannot start without what this returns.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema

from labaudit.core.digest import Digest
from labaudit.core.ids import check_variant_id
from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput
from labaudit.planning.dataset import Dataset, load_dataset
from labaudit.planning.loader import load_experiment
from labaudit.planning.metric_plan import resolve_metrics, resolve_plan
from labaudit.planning.resolved_runtime import recorded, resolve_runtime
from labaudit.planning.surroundings import Surroundings
from labaudit.planning.yaml_source import Located
from labaudit.records import schema_registry
from labaudit.records.authored import FilledDefault, filled_defaults
from labaudit.records.experiment import Experiment, VariantConfig
from labaudit.records.parts import RedactionRule
from labaudit.records.resolved import (
    DefaultFilledIn,
    ResolvedDataset,
    ResolvedDesign,
    ResolvedEvaluator,
    ResolvedExecutor,
    ResolvedExperiment,
    ResolvedName,
    ResolvedProvenance,
    ResolvedRedaction,
    ResolvedRetries,
    ScheduleSummary,
    Variant,
)
from labaudit.store.artifact_store import REFERENCE_PREFIX
from labaudit.store.atomic import read_bytes

MAX_TRIALS = 1_000_000
# top_k and top_p (0.8) are two names; temprature and temperature (0.95) are one.
ALMOST = 0.85


@dataclass(frozen=True)
class Resolution:
    """The resolved spec, and the things it names: they are stored or copied when a run starts."""

    resolved: ResolvedExperiment
    digest: Digest
    dataset: Dataset
    harness_source: Path | None
    harness_archive: bytes | None
    evaluator_sources: Mapping[str, Path] = field(default_factory=dict)
    cache: Path | None = None

    @property
    def data(self) -> bytes:
        """The bytes of `resolved_experiment.json`."""
        return self.resolved.to_bytes()


class ExperimentResolver:
    """Resolves experiments on one machine."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def resolve(self, yaml_path: Path) -> Resolution:
        """The resolution of the file at `yaml_path`; BadInput names file and line of what is wrong."""
        authored, located = load_experiment(yaml_path)
        base = yaml_path.parent
        variants = _variants(authored, located)
        dataset = _dataset(authored, located, base)
        runtime = resolve_runtime(authored.runtime, located, base, self._surroundings)
        evaluators, evaluator_sources = self._evaluators(authored, located, base)
        metrics, metric_defaults = resolve_metrics(authored, located)
        plan, plan_defaults = resolve_plan(authored, metrics, located)
        trials = len(dataset.ids) * len(variants) * authored.design.replications
        if trials > MAX_TRIALS:
            raise BadInput(f"the schedule would have {trials} trials, more than {MAX_TRIALS}", where=located.file)
        own = FilledDefault("experiment.name", authored.experiment.id, "the experiment's id")
        image = FilledDefault("runtime.image", runtime.record.image.id, "the bundled image: none was named")
        defaults = [
            *filled_defaults(authored),
            *([own] if authored.experiment.name is None else []),
            *([image] if authored.runtime.image is None and image.value is not None else []),
            *metric_defaults,
            *plan_defaults,
        ]
        resolved = ResolvedExperiment(
            experiment=ResolvedName(
                id=authored.experiment.id,
                name=authored.experiment.name or authored.experiment.id,
                description=authored.experiment.description,
                tags=authored.experiment.tags,
            ),
            dataset=_resolved_dataset(authored, dataset, base),
            design=_design(authored),
            baseline=variants[0],
            variants=variants,
            variant_plan=tuple(variant.id for variant in variants[1:]),
            runtime=runtime.record,
            evaluators=evaluators,
            metrics=metrics,
            analysis_plan=plan,
            redaction=ResolvedRedaction(
                rules=tuple(RedactionRule(pattern=r.pattern, mode=r.mode) for r in authored.redaction.rules)
            ),
            provenance=ResolvedProvenance(sbom=authored.provenance.sbom, sign=authored.provenance.sign),
            executor=ResolvedExecutor(trusted_workers=authored.executor.trusted_workers),
            schedule=ScheduleSummary(trials=trials, seed=authored.design.seed),
            defaults=tuple(DefaultFilledIn(path=d.path, value=d.value, reason=d.reason) for d in defaults),
        )
        return Resolution(
            resolved=resolved,
            digest=Digest.of(resolved.to_bytes()),
            dataset=dataset,
            harness_source=runtime.source,
            harness_archive=runtime.archive,
            evaluator_sources=evaluator_sources,
            cache=runtime.cache,
        )

    def _evaluators(
        self, authored: Experiment, located: Located, base: Path
    ) -> tuple[tuple[ResolvedEvaluator, ...], dict[str, Path]]:
        resolved: list[ResolvedEvaluator] = []
        sources: dict[str, Path] = {}
        for index, item in enumerate(authored.evaluators):
            if any(item.id == other.id for other in resolved):
                raise BadInput(f"evaluator {item.id!r} stands twice", where=located.where(("evaluators", index)))
            digest = None
            if item.source is not None:
                sources[item.id] = base / item.source
                if not sources[item.id].is_dir():
                    where = located.where(("evaluators", index, "source"))
                    raise BadInput(f"{item.source} is no directory", where=where)
                digest = self._surroundings.folder_digest(sources[item.id])
            given = item.model_dump(exclude_none=True)
            if item.source is not None:
                given["source"] = recorded(item.source, base)
            resolved.append(ResolvedEvaluator(**given, source_digest=digest))
        return tuple(resolved), sources


def _variants(authored: Experiment, located: Located) -> tuple[Variant, ...]:
    """All arms; two that share an id or all their bindings would compare a thing with itself."""
    found: list[Variant] = []
    for index, item in enumerate(authored.variants):
        where = located.where(("baseline",) if index == 0 else ("variant_plan", index - 1))
        check_variant_id(item.id, where=where)
        if found:
            _check_binding_names(item, found[0], located.where(("variant_plan", index - 1, "bindings")))
        for other in found:
            if other.id == item.id:
                raise BadInput(f"variant id {item.id!r} stands twice", where=where)
            if other.bindings == item.bindings:
                hint = "change a binding; for an A/A comparison add one that the harness ignores"
                raise BadInput(f"variant {item.id!r} changes nothing: it binds what {other.id!r} binds", where=where,
                               hint=hint)  # fmt: skip
        found.append(Variant(id=item.id, bindings=item.bindings))
    return tuple(found)


def _check_binding_names(item: VariantConfig, baseline: Variant, where: str) -> None:
    """A name that is almost one of the baseline's is a misspelling: the harness would run the baseline unnoticed."""
    for name in item.bindings.keys() - baseline.bindings.keys():
        if difflib.get_close_matches(name, baseline.bindings, n=1, cutoff=ALMOST):
            known = ", ".join(baseline.bindings)
            hint = f"known: {known}; a binding of its own right is declared in the baseline as well"
            raise BadInput(f'variant "{item.id}" sets unknown binding "{name}"', where=where, hint=hint)


def _dataset(authored: Experiment, located: Located, base: Path) -> Dataset:
    config = authored.dataset
    path = base / config.path
    if not path.is_file():
        hint = "dataset.path is relative to the experiment file"
        raise BadInput(f"there is no dataset {config.path}", where=located.where(("dataset", "path")), hint=hint)
    dataset = load_dataset(path, id_field=config.id_field, limit=config.limit, file_format=config.format)
    if config.task_schema is not None:
        _check_tasks(dataset, config.task_schema, base, located.where(("dataset", "task_schema")))
    return dataset


def _check_tasks(dataset: Dataset, name: str, base: Path, where: str) -> None:
    """Each task against a schema of the registry, or a JSON Schema file beside the experiment."""
    if name in schema_registry.schema_names():
        for task_id, task in zip(dataset.ids, dataset.tasks, strict=True):
            findings = schema_registry.validate(name, task)
            if findings:
                first = findings[0]
                raise BadInput(f"task {task_id!r} breaks {name} at {first.path or '/'}: {first.message}", where=where)
        return
    path = base / name
    if not path.is_file():
        hint = "a name of `labaudit schema list`, or a JSON Schema file beside the experiment"
        raise BadInput(f"there is no schema {name}", where=where, hint=hint)
    schema = parse_json(read_bytes(path), where=str(path))
    if not isinstance(schema, dict | bool):
        raise BadInput("is no JSON Schema", where=str(path))
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise BadInput(f"is no JSON Schema: {error.message}", where=str(path)) from error
    validator = jsonschema.Draft202012Validator(schema)
    for task_id, task in zip(dataset.ids, dataset.tasks, strict=True):
        problem = next(iter(validator.iter_errors(task)), None)
        if problem is not None:
            raise BadInput(f"task {task_id!r} breaks {name} at {problem.json_path}: {problem.message}", where=where)


def _resolved_dataset(authored: Experiment, dataset: Dataset, base: Path) -> ResolvedDataset:
    config = authored.dataset
    return ResolvedDataset(
        path=recorded(config.path, base) or config.path,
        format=dataset.format,  # type: ignore[arg-type]
        sha256=dataset.sha256,
        size=len(dataset.data),
        id_field=config.id_field,
        limit=config.limit,
        count=len(dataset.ids),
        task_schema=recorded(config.task_schema, base),
        artifact_ref=REFERENCE_PREFIX + dataset.sha256,
    )


def _design(authored: Experiment) -> ResolvedDesign:
    design = authored.design
    return ResolvedDesign(
        **design.model_dump(exclude={"retries"}), retries=ResolvedRetries(infra=design.retries.infra)
    )
