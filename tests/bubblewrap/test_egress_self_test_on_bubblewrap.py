"""The egress self-test on bubblewrap: it passes what is shut, finds what is open, and doubts what nobody controlled."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from labaudit.engines.bubblewrap.engine import BubblewrapEngine
from labaudit.engines.checks.egress_test import HostCanaries, ProbedSandbox, attack, run_egress_test
from labaudit.engines.process_engine import ProcessEngine
from labaudit.engines.protocol import Engine, NetworkSpec
from labaudit.errors import BadInput
from labaudit.network.enforcer import EnforcementState
from labaudit.network.self_test.run import EgressSelfTest

pytestmark = pytest.mark.bubblewrap


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with BubblewrapEngine.detect() as made:
        yield made


def keep(document: bytes) -> str:
    return f"artifact://sha256/{len(document)}"


def test_network_none_passes(engine: Engine) -> None:
    outcome = run_egress_test(engine, "none", store=keep)
    assert outcome.result == "pass", outcome.reasons


def test_an_allowlist_passes_with_the_allowed_reached_and_the_denied_logged(engine: Engine) -> None:
    outcome = run_egress_test(engine, "allowlist_enforced", allowed_hosts=("a.example",), store=keep)
    assert outcome.result == "pass", outcome.reasons
    document = json.loads(outcome.document)
    assert {(event["host"], event["decision"]) for event in document["proxy_events"]} == {
        ("localhost", "allow"),
        ("denied.localhost", "block"),
    }


def test_a_sandbox_that_shares_the_hosts_network_fails(engine: Engine) -> None:
    with HostCanaries(engine) as canaries:
        open_sandbox = ProbedSandbox(engine, NetworkSpec("full"))
        test = EgressSelfTest(
            "bubblewrap", open_sandbox, canaries.unrestricted, canaries.points(), canaries.arrivals, keep
        )
        outcome = test.run(None, EnforcementState("none", "bubblewrap_netns", shares_network=False))
    assert outcome.result == "fail"


def test_a_dead_canary_is_inconclusive(engine: Engine) -> None:
    with HostCanaries(engine) as canaries:
        canaries._host.close()
        outcome = attack(canaries, NetworkSpec("none"), keep)
    assert outcome.result == "inconclusive"


def test_an_engine_that_confines_nothing_has_nothing_to_test() -> None:
    with ProcessEngine() as engine, pytest.raises(BadInput, match="nothing to test"):
        run_egress_test(engine, "none", store=keep)
