"""The process engine: a child process, honest about what it does not confine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labaudit.engines.process_engine import ProcessEngine
from labaudit.engines.protocol import Engine, LoopbackService, NetworkSpec, NotObserved
from labaudit.engines.select import select_engine
from labaudit.errors import EnvironmentLacks, PolicyUnmet
from tests.engine_contract import EngineContract, opened, python, run, spec_for
from tests.leftovers import own_runtime_folder


@pytest.fixture
def engine() -> Iterator[Engine]:
    with ProcessEngine() as made:
        yield made


class TestTheContract(EngineContract):
    pass


def test_it_is_taken_by_name_only_and_says_so() -> None:
    engine, why = select_engine("process")
    assert engine.name == "process"
    assert "no isolation" in why


def test_it_claims_nothing_that_it_did_not_see(engine: Engine) -> None:
    result = run(engine, "true")
    assert isinstance(result.observed.root_read_only, NotObserved)
    assert isinstance(result.observed.interfaces, NotObserved)
    missing = {item.what for item in result.unenforced}
    assert {"read_only_root", "network", "seccomp", "memory_mb", "pids", "process_containment"} <= missing
    assert (result.network.mode_requested, result.network.mode_effective) == ("none", "full")
    assert (result.network.enforcement, result.network.bypass_risk) == ("none", "high")


def test_an_allowlist_is_refused_because_it_could_not_be_enforced(engine: Engine) -> None:
    with pytest.raises(PolicyUnmet, match="cannot enforce an allowlist"):
        engine.open(spec_for(engine, "true", network=NetworkSpec("allowlist_enforced", ("a.example",))))


def test_the_runners_environment_does_not_leak_in(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "s3cret")
    result = python(engine, "import os; print(sorted(os.environ))", env={"GIVEN": "1"})
    assert b"SOME_SECRET" not in result.stdout.head
    assert b"GIVEN" in result.stdout.head


def test_surfaces_have_their_host_paths_inside_too(engine: Engine) -> None:
    with opened(engine, "true") as sandbox:
        assert sandbox.inside == sandbox.host


def test_a_port_that_is_taken_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    service = LoopbackService("echo", 14319, tmp_path / "s")
    with own_runtime_folder() as runtime, ProcessEngine() as engine, opened(engine, "true", services=(service,)):
        before = set(runtime.iterdir())
        second = spec_for(engine, "true", services=(service,))
        with pytest.raises(EnvironmentLacks, match="14319"):
            engine.open(second)
        assert set(runtime.iterdir()) == before
