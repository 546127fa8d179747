"""One sealed, signed run for all tests of this folder; tests that spoil something work on copies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labaudit.verify.request import Anchors, Request
from labaudit.verify.targets import verify_target
from labaudit.verify.verdict import Report
from tests.make_run import MadeRun, make_run


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    """Six trials, one lost, one failed."""
    return make_run(tmp_path_factory.mktemp("made"))


@pytest.fixture
def copied(made: MadeRun, tmp_path: Path) -> Path:
    """A copy of the run's folder."""
    path = tmp_path / made.run.path.name
    shutil.copytree(made.run.path, path)
    return path


@pytest.fixture
def completed(made: MadeRun) -> list[str]:
    """Ids of trials that ended well, in schedule order."""
    rows = json.loads(made.run.inclusion.read_bytes())["rows"]
    return [row["trial_id"] for row in rows if row["outcome"] == "success"]


@pytest.fixture
def check(made: MadeRun) -> Callable[..., Report]:
    """`labaudit verify PATH --key PUB` as a call."""

    def run(path: Path, **options: Any) -> Report:
        options.setdefault("anchors", Anchors(keys=(made.signing.public,)))
        return verify_target(path, Request(**options))

    return run


def codes(report: Report) -> set[str]:
    """The reason codes of a report."""
    return {finding.code for finding in report.findings}
