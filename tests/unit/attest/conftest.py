"""One sealed run for all tests of this folder."""

from __future__ import annotations

import pytest

from tests.make_run import MadeRun, RunPlan, make_run


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    return make_run(tmp_path_factory.mktemp("attest"), RunPlan(analysis=False))
