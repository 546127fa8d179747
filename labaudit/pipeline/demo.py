"""The bundled experiments, all the way: run, analyse, sign, verify, tamper, site.

Everything is real: sandboxes, evidence, keys and signatures. The agent is a stand-in without a model, which every page
says, so the result is about the agent's own rules and nothing else.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from labaudit import resources
from labaudit.attest.keys import PublicKey
from labaudit.engines.select import select_engine
from labaudit.engines.stand_in import stand_in_server
from labaudit.errors import BadInput, Contradiction
from labaudit.pipeline.run import Progress, RunRequest, RunResult, run_experiment
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.request import Anchors, Request
from labaudit.verify.targets import verify_target
from labaudit.verify.verdict import Report


@dataclass(frozen=True)
class Demonstration:
    """What the demo made and found."""

    lab: LabFolder
    results: tuple[RunResult, ...]
    site: Path
    tampered: Report
    """The verdict on a copy with one changed byte: it must not be `verified`."""


def demonstrate(out: Path, request: RunRequest, progress: Progress) -> Demonstration:
    """Runs the bundled experiments in a lab below `out`, verifies them, and builds their site."""
    from labaudit.site.build import build_site
    from labaudit.site.signing import Publisher

    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise BadInput("is there already", where=str(out), hint="name another folder with --out, or remove it")
    lab = LabFolder(out / "lab")
    first = run_experiment(_copy("demo", out / "experiment"), lab, request, progress)
    results = [first, *_allowlist(out / "allowlist", lab, request, progress)]
    progress.stage("verifying with the lab's public key")
    for result in results:
        report = verify_target(result.run.path, trusting(lab))
        if report.exit_code != 0:
            raise Contradiction(f"the run does not verify: {report.verdict}", where=str(result.run.path))
    progress.stage("changing one byte in a copy, and verifying that")
    tampered = verify_tampered_copy(first, lab, out / "tampered-copy")
    progress.stage("building the site")
    runs = [result.run.path for result in results]
    site = build_site(runs, out / "site", publisher=Publisher.of_lab(lab))
    return Demonstration(lab, tuple(results), site.front_page, tampered)


def _allowlist(folder: Path, lab: LabFolder, request: RunRequest, progress: Progress) -> list[RunResult]:
    """The second experiment, with a server of our own as the one allowed host; none where nothing can enforce it."""
    engine, _ = select_engine(request.engine or "auto")
    with engine:
        if engine.name == "process":
            progress.stage("no allowlist experiment: the process engine cannot enforce one")
            return []
        path = _copy("allowlist", folder)
        with stand_in_server(engine, folder / "server.py") as server:
            text = path.read_text().replace("SERVER", f'"{server.target}"')
            path.write_text(text.replace("NETWORKS", json.dumps(list(server.networks))))
            return [run_experiment(path, lab, request, progress)]


def _copy(name: str, folder: Path) -> Path:
    shutil.copytree(resources.experiment_dir(name), folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "experiment.yaml"


def trusting(lab: LabFolder) -> Request:
    """A request that trusts the lab's own key."""
    return Request(anchors=Anchors(keys=(PublicKey.load(lab.public_key),)))


def verify_tampered_copy(result: RunResult, lab: LabFolder, place: Path) -> Report:
    """The verdict on a copy of the run in which one byte of one event is another; the copy is removed again."""
    shutil.copytree(result.run.path, place)
    try:
        log = next(iter(sorted((place / "trials").glob("*/events.jsonl"))))
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 1
        log.write_bytes(bytes(data))
        report = verify_target(place, trusting(lab))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if report.exit_code == 0:
        raise Contradiction("a changed byte was not found", where=str(result.run.path))
    return report
