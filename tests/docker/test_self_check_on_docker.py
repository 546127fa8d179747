"""The self-check list on docker, and on a docker that ignores what it is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from labaudit.engines.checks.self_check import RULES, self_check
from labaudit.engines.docker import sandbox as docker_sandbox
from labaudit.engines.docker.api import is_podman
from labaudit.engines.docker.engine import DockerEngine

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("docker")]


def test_every_rule_is_ok() -> None:
    with DockerEngine.connect() as engine:
        checks = self_check(engine)
    assert [check.name for check in checks] == ["runs a command", *RULES]
    assert [check for check in checks if check.status != "ok"] == []


@pytest.mark.parametrize(
    ("dropped", "line"),
    [
        ("ReadonlyRootfs", "file system"),
        ("CapDrop", "no privileges"),
        ("SecurityOpt", "system calls"),
        ("NetworkMode", "no network"),
        ("Memory", "limits"),
        ("PidsLimit", "limits"),
        ("Dns", "resolvers"),
    ],
)
def test_an_option_that_the_engine_ignores_is_found(
    dropped: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B69: the request says one thing, the engine does another; only what is seen counts."""
    build = docker_sandbox.trial_container

    def ignoring(*arguments: Any, **options: Any) -> dict[str, Any]:
        body = build(*arguments, **options)
        del body["HostConfig"][dropped]
        if dropped == "Memory":
            del body["HostConfig"]["MemorySwap"]
        return body

    monkeypatch.setattr(docker_sandbox, "trial_container", ignoring)
    with DockerEngine.connect() as engine:
        if dropped == "Dns" and is_podman(engine.client):
            pytest.skip("Podman shows no resolvers in a container without a network")
        checks = {check.name: check for check in self_check(engine)}
    assert checks[line].status != "ok", checks[line]
