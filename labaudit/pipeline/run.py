"""The whole story in order: experiment.yaml -> resolved spec -> trials -> inclusion -> analysis -> grades -> seal.

Each step is one line here and one package below; what is fixed before the first trial is signed before the first trial.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from labaudit.attest.layout import link_name
from labaudit.attest.sbom import SbomReport, describe_harness, describe_image
from labaudit.attest.seal import Sealed, seal_run, sign_resolve_link, sign_run
from labaudit.attest.signers import KeySigner
from labaudit.attest.trust_store import LabKeys, ensure_keys
from labaudit.core.clock import Clock, SystemClock
from labaudit.engines.protocol import Engine
from labaudit.engines.select import select_engine
from labaudit.errors import BadInput, Contradiction, EnvironmentLacks, Interrupted
from labaudit.harnesses.select import check_harness
from labaudit.pipeline.advice import warnings
from labaudit.planning.loader import load_experiment
from labaudit.planning.resolver import ExperimentResolver, Resolution
from labaudit.records.attestation import Attestation
from labaudit.records.grades import Grades
from labaudit.records.inclusion import Inclusion
from labaudit.records.resolved import ResolvedExperiment
from labaudit.runner.context import RunOptions
from labaudit.runner.execution import execute, find_image, open_context, remove_live, run_lock
from labaudit.runner.executor import Executor, LocalExecutor, TrialDone
from labaudit.runner.finish import grade_run, include_trials, list_other_artifacts
from labaudit.runner.run_start import create_run, other_roles, read_resolved, read_secrets
from labaudit.runner.self_test import run_self_test
from labaudit.runner.surroundings import Machine
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder


class Progress(Protocol):
    """What a user is told while it runs."""

    def stage(self, text: str) -> None:
        """A step of the pipeline begins."""

    def trials(self, total: int, done: int) -> None:
        """Trials begin; `done` are there already."""

    def trial(self, done: TrialDone) -> None:
        """A trial has ended."""


@dataclass(frozen=True)
class RunRequest:
    """How a run is to be executed and signed."""

    engine: str | None = None
    options: RunOptions = field(default_factory=RunOptions)
    key: Path | None = None
    sign: bool = True
    executor: Executor | None = None
    clock: Clock = field(default_factory=SystemClock)


@dataclass(frozen=True)
class RunResult:
    """A sealed run, in the words that `labaudit run` prints."""

    run: RunFolder
    grades: Grades
    inclusion: Inclusion
    sealed: Sealed
    invalid: tuple[str, ...]
    """Sentences: why the run is invalid by its own rules; empty when it is not."""
    warnings: tuple[str, ...] = ()


def resolve_experiment(yaml_path: Path, engine_name: str | None = None) -> tuple[Resolution, Engine, Machine]:
    """Resolves without running; the engine that was taken comes along, open."""
    authored, located = load_experiment(yaml_path)
    engine, reason = select_engine(engine_name or authored.runtime.engine)
    machine = Machine(engine, reason)
    try:
        resolution = ExperimentResolver(machine).resolve(yaml_path)
        try:
            check_harness(resolution.resolved, resolution.dataset.tasks)
        except BadInput as error:
            where = located.where(tuple(error.where.split(".")))
            raise BadInput(error.what, where=where, hint=error.hint) from error
        return resolution, engine, machine
    except BaseException:
        engine.close()
        raise


def run_experiment(yaml_path: Path, lab: LabFolder, request: RunRequest, progress: Progress) -> RunResult:
    """From the author's file to a sealed and signed run."""
    progress.stage("resolving the experiment")
    resolution, engine, _ = resolve_experiment(yaml_path, request.engine)
    with engine:
        # A secret that is not there is better told before there is a run to resume.
        read_secrets(resolution.resolved.runtime.harness.secrets)
        keys = _keys(lab, request, resolution.resolved, progress)
        run = create_run(lab, resolution, request.clock)
        with run_lock(lab, run.run_id):
            if keys is not None:
                sign_resolve_link(run, keys.signing)
            progress.stage(f"run {run.run_id}: {resolution.resolved.schedule.trials} trials on {engine.name}")
            return _run_trials(lab, run, engine, keys, request, progress)


def resume_run(lab: LabFolder, run: RunFolder, request: RunRequest, progress: Progress) -> RunResult:
    """Goes on where an interrupted run stopped; finished trials are kept."""
    if run.sealed and not run.half_signed:
        raise BadInput(f"run {run.run_id} is finished and sealed", where=str(run.path), hint="nothing is left to do")
    resolved, _ = read_resolved(run)
    with run_lock(lab, run.run_id):
        # Killed in the middle of a write, a runner leaves a file that no list names; a trial comes in whole.
        for place in run.path.iterdir():
            if place != run.trials and place.is_dir():
                atomic.remove_leftovers(place)
            elif place.name.startswith(atomic.TEMPORARY_PREFIX):
                place.unlink()
        if run.sealed:
            return _sign_to_the_end(lab, run, resolved, request, progress)
        run.artifacts.remove_unfinished()
        engine, _ = select_engine(resolved.runtime.engine.resolved)
        with engine:
            keys = _keys(lab, request, resolved, progress)
            _keep_the_plans_signer(run, keys)
            progress.stage(f"resuming {run.run_id} on {engine.name}")
            return _run_trials(lab, run, engine, keys, request, progress)


def _run_trials(
    lab: LabFolder, run: RunFolder, engine: Engine, keys: LabKeys | None, request: RunRequest, progress: Progress
) -> RunResult:
    for left in engine.reap():
        progress.stage(f"cleared away a leftover {left.kind}: {left.name}")
    resolved, _ = read_resolved(run)
    self_test = run_self_test(engine, find_image(engine, resolved), resolved, run, progress.stage)
    executor = request.executor or LocalExecutor(request.options.workers)
    ctx = open_context(
        lab,
        run,
        engine,
        options=request.options,
        clock=request.clock,
        self_test=self_test,
        evidence_origin=executor.evidence_origin,
    )
    go_on = f"go on with: labaudit resume {lab.named(run.run_id)}"
    try:
        execute(ctx, executor, on_start=progress.trials, on_done=progress.trial)
        result = finish_run(ctx.run, ctx.resolved, keys, request.clock, progress, engine=engine, live=ctx.live)
    except Interrupted as error:
        raise Interrupted(error.what, where=run.run_id, hint=go_on) from error
    except EnvironmentLacks as error:
        hint = error.hint if "labaudit resume" in error.hint else f"{error.hint}\n  {go_on}".strip()
        raise EnvironmentLacks(error.what, where=error.where, hint=hint) from error
    remove_live(lab, run.run_id)
    return result


def finish_run(
    run: RunFolder,
    resolved: ResolvedExperiment,
    keys: LabKeys | None,
    clock: Clock,
    progress: Progress,
    *,
    engine: Engine | None = None,
    live: Path | None = None,
) -> RunResult:
    """Everything after the last trial, in the order of sealing; shared with imported runs."""
    from labaudit.analysis import analyse_run

    progress.stage("judging which trials count")
    included, grader = include_trials(run, run.run_id, resolved)
    atomic.write_bytes(run.inclusion, included.to_bytes())
    progress.stage("analysing")
    analyse_run(run)
    grades = grade_run(run, run.run_id, grader, included)
    atomic.write_bytes(run.grades, grades.to_bytes())
    report = make_sboms(run, resolved, clock, engine=engine, live=live)
    run.artifacts.remove_unfinished()
    list_other_artifacts(run, other_roles(live, resolved) if live is not None else {})
    progress.stage("sealing" if keys is None else "sealing and signing")
    sealed = seal_run(
        run,
        KeySigner(keys.signing) if keys is not None else None,
        clock=clock,
        log_key=keys.log if keys is not None else None,
        sbom_missing=report.missing,
    )
    return RunResult(run, grades, included, sealed, invalidating(resolved, included, report), warnings(run, included))


def make_sboms(
    run: RunFolder, resolved: ResolvedExperiment, clock: Clock, *, engine: Engine | None, live: Path | None
) -> SbomReport:
    """Bills of materials of image and harness, where the spec wants them and they can be had."""
    report = SbomReport()
    if resolved.provenance.sbom == "off":
        return report
    created = clock.now()
    image = resolved.runtime.image
    harness = resolved.runtime.harness
    with _image_source(engine, image.id) as source:
        describe_image(report, run.sbom, image.requested or "bundled", image.id, source, created=created)
    lockfile = _lockfile(resolved, live)
    describe_harness(report, run.sbom, resolved.experiment.id, harness.source_digest, lockfile, created=created)
    return report


@contextmanager
def _image_source(engine: Engine | None, image_id: str | None) -> Iterator[Path | None]:
    """A folder or an archive with the image's files; None where the engine cannot give one."""
    if engine is None or image_id is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="labaudit-image-") as folder:
        yield engine.image_archive(image_id, Path(folder))


def _lockfile(resolved: ResolvedExperiment, live: Path | None) -> Path | None:
    """The lockfile inside the copy of the harness, where it lies below the source."""
    harness = resolved.runtime.harness
    if harness.lockfile is None or harness.source is None or live is None:
        return None
    try:
        relative = Path(harness.lockfile).relative_to(harness.source)
    except ValueError:
        return None
    path = live / "harness" / relative
    return path if path.is_file() else None


def invalidating(resolved: ResolvedExperiment, included: Inclusion, report: SbomReport) -> tuple[str, ...]:
    """Why a run is invalid by its own rules; its evidence is sealed and signed all the same."""
    found: list[str] = []
    by_rule: dict[str, list[str]] = {}
    for row in included.rows:
        if row.status == "excluded":
            by_rule.setdefault(row.rule, []).append(row.reason)
    for rule, reasons in sorted(by_rule.items()):
        found.append(f"{len(reasons)} trial(s) excluded by {rule}: {reasons[0]}")
    if included.totals.scheduled == included.totals.lost:
        found.append("every trial was lost")
    if resolved.provenance.sbom == "required":
        try:
            report.insist()
        except Contradiction as error:
            found.append(error.what)
    return tuple(found)


def _sign_to_the_end(
    lab: LabFolder, run: RunFolder, resolved: ResolvedExperiment, request: RunRequest, progress: Progress
) -> RunResult:
    """Signatures follow from key and manifest alone, so those that are there already come out the same."""
    keys = _keys(lab, request, resolved, progress)
    _keep_the_plans_signer(run, keys)
    progress.stage(f"signing {run.run_id}, which was sealed already")
    assert keys is not None, "half signed means that there is a link, and a link demands its key"
    sealed = sign_run(run, KeySigner(keys.signing), log_key=keys.log)
    included = Inclusion.from_bytes(atomic.read_bytes(run.inclusion), where=str(run.inclusion))
    grades = Grades.from_bytes(atomic.read_bytes(run.grades), where=str(run.grades))
    told = Attestation.from_bytes(atomic.read_bytes(run.attestation), where=str(run.attestation))
    report = SbomReport(missing=[entry.to_json() for entry in told.sbom.missing])
    remove_live(lab, run.run_id)
    return RunResult(run, grades, included, sealed, invalidating(resolved, included, report), warnings(run, included))


def _keep_the_plans_signer(run: RunFolder, keys: LabKeys | None) -> None:
    """Signs a plan that nobody signed yet. With another key the run would contradict itself: the plan's link stays."""
    links = [path.name for path in run.attestations.glob("resolve.*.link")]
    if keys is not None and not links:
        sign_resolve_link(run, keys.signing)
    elif links and (keys is None or link_name("resolve", keys.signing.public) not in links):
        what = "the plan of this run was signed when it started, and not by the key that is at hand now"
        hint = f"resume with --key and the private key of {', '.join(links)}"
        raise BadInput(what, where=str(run.path), hint=hint)


def _keys(
    lab: LabFolder, request: RunRequest, resolved: ResolvedExperiment, progress: Progress
) -> LabKeys | None:
    if not request.sign or not resolved.provenance.sign:
        return None
    keys = ensure_keys(lab, key_path=request.key)
    if keys.made_now:
        progress.stage(f"made this lab's signing key {keys.path}; give others {lab.public_key}")
    return keys
