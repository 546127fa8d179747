"""The egress self-test on docker: it passes what is shut, and finds every kind of network that is not."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from labaudit.engines.checks.egress_test import attack, run_egress_test
from labaudit.engines.docker.api import is_podman
from labaudit.engines.docker.canaries import DockerCanaries
from labaudit.engines.docker.engine import DockerEngine
from labaudit.engines.host.ownership import OWNER, labels_of, this_process
from labaudit.engines.host.surfaces import runtime_folder
from labaudit.engines.protocol import NetworkSpec, SandboxLabels
from labaudit.network.enforcer import EnforcementState
from labaudit.network.self_test.run import EgressSelfTest, SelfTestOutcome

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("docker")]


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerEngine]:
    with DockerEngine.connect() as made:
        yield made


@pytest.fixture(scope="module")
def canaries(engine: DockerEngine) -> Iterator[DockerCanaries]:
    with DockerCanaries(engine) as made:
        yield made


def keep(document: bytes) -> str:
    return f"artifact://sha256/{len(document)}"


def outcome_on(canaries: DockerCanaries, network: str) -> SelfTestOutcome:
    """The same test with a container on a plain network in the place of a sandbox."""
    test = EgressSelfTest(
        "docker", canaries.on_network(network), canaries.unrestricted, canaries.points(), canaries.arrivals, keep
    )
    return test.run(None, EnforcementState("none", "docker_none", shares_network=False))


def test_network_none_passes(canaries: DockerCanaries, engine: DockerEngine) -> None:
    outcome = attack(canaries, NetworkSpec("none"), keep, engine)
    assert outcome.result == "pass", outcome.reasons
    assert {case["observed"] for case in outcome.cases if case["expected"] == "block"} == {"block"}
    assert {case["observed"] for case in outcome.cases if case["expected"] == "allow"} == {"allow"}


def test_an_allowlist_passes_with_the_allowed_reached_and_the_denied_logged(engine: DockerEngine) -> None:
    kept: list[bytes] = []
    outcome = run_egress_test(engine, "allowlist_enforced", store=lambda document: (kept.append(document), "ref")[1])
    assert outcome.result == "pass", outcome.reasons
    document = json.loads(kept[0])
    proxied = [case for case in document["cases"] if case["kind"] == "proxied"]
    assert [(case["expected"], case["observed"]) for case in proxied] == [("allow", "allow"), ("block", "block")]
    decisions = {(event["host"], event["decision"]) for event in document["proxy_events"]}
    assert {(proxied[0]["host"], "allow"), (proxied[1]["host"], "block")} <= decisions
    assert document["seen_from"]["restricted"]["interfaces"] == ["lo"]


@pytest.mark.acceptance
def test_a_bridge_fails(canaries: DockerCanaries) -> None:
    outcome = outcome_on(canaries, "bridge")
    assert outcome.result == "fail"
    assert any("host" in reason for reason in outcome.reasons)


@pytest.mark.acceptance
def test_the_hosts_own_network_fails(canaries: DockerCanaries) -> None:
    outcome = outcome_on(canaries, "host")
    assert outcome.result == "fail"


def test_a_plain_internal_network_fails_because_the_host_answers_at_its_gateway(
    canaries: DockerCanaries, engine: DockerEngine
) -> None:
    if is_podman(engine.client):
        pytest.skip("an internal network of Podman has no gateway on the host, so here it is shut")
    labels = labels_of(SandboxLabels("egress-self-test", "internal"), "canary")
    made = engine.client.create_network("labaudit-test-internal", driver="bridge", internal=True, labels=labels)["Id"]
    try:
        outcome = outcome_on(canaries, "labaudit-test-internal")
    finally:
        engine.client.remove_network(made)
    assert outcome.result == "fail"
    assert all(reason.startswith("host: ") for reason in outcome.reasons)


def test_a_dead_canary_is_inconclusive(engine: DockerEngine) -> None:
    with DockerCanaries(engine) as dead:
        engine.client.kill(dead.container)
        outcome = attack(dead, NetworkSpec("none"), keep, engine)
    assert outcome.result == "inconclusive"
    assert any(reason.startswith("bridge: ") for reason in outcome.reasons)


@pytest.mark.acceptance
def test_nothing_of_the_test_is_left(engine: DockerEngine) -> None:
    """Only what this process owns counts: others may use the same engine meanwhile."""
    mine = {"label": f"{OWNER}={this_process()}"}

    def there() -> tuple[set[str], set[str], set[str]]:
        networks = {network["Id"] for network in engine.client.networks(filters=mine)}
        containers = {made["Id"] for made in engine.client.containers(all=True, filters=mine)}
        owned = (folder for folder in runtime_folder().glob("*/owner") if folder.read_text() == str(this_process()))
        return networks, containers, {path.parent.name for path in owned}

    def probe(document: bytes) -> str:
        during.append(there())
        return keep(document)

    during: list[tuple[set[str], set[str], set[str]]] = []
    before = there()
    run_egress_test(engine, "allowlist_enforced", store=probe)
    assert all(len(seen) > len(had) for seen, had in zip(during[0], before, strict=True))  # the look does see them
    assert there() == before
