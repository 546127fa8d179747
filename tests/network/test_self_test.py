"""The egress self-test with real canaries and real namespaces: what passes, what fails, what stays open.

A plain bridge and an internal network are containers' business and are tested with the docker engine; here the
sandbox under test is a network namespace of this test, or no sandbox at all.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from labaudit.core.canonical import is_canonical
from labaudit.network.enforcer import EnforcementState, NetworkEnforcer
from labaudit.network.forward import Forwarder
from labaudit.network.local_proxy import NetworkProxy
from labaudit.network.policy import EgressPolicy
from labaudit.network.self_test.host_canary import HostCanary
from labaudit.network.self_test.run import CanaryPoint, EgressSelfTest, ProxiedPair, run_here
from labaudit.records.document_rules import an_allowlist_was_self_tested_both_ways, ok_means_observed_equals_expected

# The marker's own check is what this needs too: a kernel that lets us make namespaces.
IN_NAMESPACE = pytest.mark.bubblewrap
NONE = NetworkEnforcer("bubblewrap_netns").apply("none", None, None)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Shorter than pytest's own, which with several workers can be too long for a unix socket."""
    with tempfile.TemporaryDirectory(prefix="st-") as folder:
        yield Path(folder)


@dataclass(frozen=True)
class Done:
    exit_code: int
    stdout: bytes


def own_namespace(command: tuple[str, ...], seconds: float) -> Done:
    """A sandbox as mode `none` means it: loopback and nothing else."""
    words = ("unshare", "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", sys.executable, *command[1:])
    done = subprocess.run(words, capture_output=True, timeout=seconds, check=False)
    return Done(done.returncode, done.stdout)


@pytest.fixture
def canary() -> Iterator[HostCanary]:
    made = HostCanary()
    yield made
    made.close()


class Kept:
    """Keeps the document as an artifact store would."""

    def __init__(self) -> None:
        self.documents: list[bytes] = []

    def __call__(self, document: bytes) -> str:
        self.documents.append(document)
        return "artifact://sha256/" + "0" * 64


def make(canary: HostCanary, restricted: Any, **more: Any) -> EgressSelfTest:
    more["settle_seconds"] = 0.05
    return EgressSelfTest("test", restricted, run_here, canary.points(), canary.tokens, Kept(), **more)


@IN_NAMESPACE
def test_a_namespace_without_a_network_passes(canary: HostCanary) -> None:
    outcome = make(canary, own_namespace).run(None, NONE)
    assert (outcome.result, outcome.reasons) == ("pass", ())
    document = json.loads(outcome.document)
    assert is_canonical(outcome.document)
    assert document["seen_from"]["restricted"] == {"interfaces": ["lo"]}
    kinds = {(case["phase"], case["kind"], case["observed"]) for case in document["cases"]}
    for kind in ("tcp", "udp", "abstract"):
        assert ("control_before", kind, "allow") in kinds
        assert ("restricted", kind, "block") in kinds
        assert ("control_after", kind, "allow") in kinds
    tokens = [case["token"] for case in document["cases"]]
    assert len(set(tokens)) == len(tokens)


def test_the_document_tells_no_address_of_the_machine(canary: HostCanary) -> None:
    outcome = make(canary, run_here).run(None, NONE)
    addresses = {point.address for point in canary.points() if point.kind != "abstract"}
    assert addresses
    assert not [address for address in addresses if address.encode() in outcome.document]
    assert len({case["target"] for case in outcome.cases}) == len(outcome.cases)


def test_no_sandbox_at_all_fails(canary: HostCanary) -> None:
    outcome = make(canary, run_here).run(None, NONE)
    assert outcome.result == "fail"
    assert any("abstract" in reason for reason in outcome.reasons)
    assert any("tcp loopback" in reason for reason in outcome.reasons)
    assert any("udp" in reason for reason in outcome.reasons)


def test_a_one_way_leak_fails_though_the_inside_claims_to_be_blocked(canary: HostCanary) -> None:
    def liar(command: tuple[str, ...], seconds: float) -> Done:
        honest = json.loads(run_here(command, seconds).stdout)
        for row in honest["results"]:
            row.update(result="unreachable", detail="ENETUNREACH")
        return Done(0, json.dumps(honest).encode())

    outcome = make(canary, liar).run(None, NONE)
    assert outcome.result == "fail"
    assert "though the inside says unreachable" in " ".join(outcome.reasons)


@IN_NAMESPACE
def test_a_dead_canary_is_inconclusive(canary: HostCanary) -> None:
    points = canary.points()
    canary.close()
    outcome = EgressSelfTest("test", own_namespace, run_here, points, canary.tokens, Kept()).run(None, NONE)
    assert outcome.result == "inconclusive"
    assert any("control_before" in reason for reason in outcome.reasons)


@IN_NAMESPACE
def test_a_canary_that_dies_in_between_is_inconclusive(canary: HostCanary) -> None:
    def kill_it_first(command: tuple[str, ...], seconds: float) -> Done:
        canary.close()
        return own_namespace(command, seconds)

    outcome = make(canary, kill_it_first).run(None, NONE)
    assert outcome.result == "inconclusive"
    assert all("control_after" in reason for reason in outcome.reasons)


@pytest.mark.parametrize("stdout", [b"", b"no json\n", b'{"results": []}\n', b'{"results": [], "interfaces": []}\n'])
def test_a_probe_that_tells_nothing_is_inconclusive(canary: HostCanary, stdout: bytes) -> None:
    outcome = make(canary, lambda command, seconds: Done(1, stdout)).run(None, NONE)
    assert outcome.result == "inconclusive"
    assert {case["observed"] for case in outcome.cases if "from the sandbox" in str(case["target"])} == {"unknown"}


def test_an_engine_that_raises_is_inconclusive_and_the_document_says_why(canary: HostCanary) -> None:
    def broken(command: tuple[str, ...], seconds: float) -> Done:
        raise RuntimeError("no such container")

    outcome = make(canary, broken).run(None, NONE)
    assert outcome.result == "inconclusive"
    assert "no such container" in json.loads(outcome.document)["seen_from"]["restricted"]["problem"]


def test_a_canary_without_a_control_is_inconclusive(canary: HostCanary) -> None:
    points = (CanaryPoint("lonely", "tcp", "127.0.0.1", 9, control="none"),)
    outcome = EgressSelfTest("test", run_here, run_here, points, canary.tokens, Kept()).run(None, NONE)
    assert outcome.result == "inconclusive"
    assert outcome.reasons == ("lonely by tcp has no control",)


def test_a_test_that_attacks_nothing_is_inconclusive(canary: HostCanary) -> None:
    outcome = EgressSelfTest("test", run_here, run_here, (), canary.tokens, Kept()).run(None, NONE)
    assert outcome.result == "inconclusive"


class ProxiedPlace:
    """A namespace whose port 3128 leads to a real proxy: the topology of an allowlist, made with plain tools."""

    def __init__(self, proxy: NetworkProxy, program: Path) -> None:
        self._proxy, self._program = proxy, program

    def __call__(self, command: tuple[str, ...], seconds: float) -> Done:
        script = 'ip link set lo up; "$1" -I -S "$2" 3128="$3" & sleep 0.3; shift 3; "$@"; code=$?; kill $!; exit $code'
        words = (
            "unshare", "-rn", "sh", "-c", script, "sh", sys.executable, str(self._program), str(self._proxy.socket),
            sys.executable, *command[1:],
        )  # fmt: skip
        done = subprocess.run(words, capture_output=True, timeout=seconds, check=False)
        return Done(done.returncode, done.stdout)


@pytest.fixture
def state() -> EnforcementState:
    return EnforcementState("allowlist_enforced", "unix_socket_proxy", shares_network=False)


def proxied_test(canary: HostCanary, proxy: NetworkProxy, port: int) -> EgressSelfTest:
    place = ProxiedPlace(proxy, Path(sys.modules[Forwarder.__module__].__file__ or ""))

    def events() -> list[bytes]:
        proxy.drain()
        return proxy.read_log(0).splitlines()

    pair = ProxiedPair("host", ("localhost", port), ("localhost", port + 1 if port < 65535 else port - 1))
    return make(canary, place, proxied=pair, proxy_events=events)


@IN_NAMESPACE
def test_an_allowlist_passes_with_both_sides_of_the_proxy_agreeing(
    canary: HostCanary, tmp_path: Path, state: EnforcementState
) -> None:
    policy = EgressPolicy.parse([f"localhost:{canary.port}"], ["127.0.0.0/8", "::1/128"])
    proxy = NetworkProxy.start(policy, tmp_path)
    try:
        outcome = proxied_test(canary, proxy, canary.port).run(policy, state)
    finally:
        proxy.close()
    assert (outcome.result, outcome.reasons) == ("pass", ())
    through = [case for case in outcome.cases if "through the proxy" in str(case["target"])]
    assert [(case["expected"], case["observed"]) for case in through] == [("allow", "allow"), ("block", "block")]
    assert {event["decision"] for event in json.loads(outcome.document)["proxy_events"]} == {"allow", "block"}
    network = {
        "mode_effective": "allowlist_enforced",
        "egress_self_test": {"performed": True, "cases": list(outcome.cases)},
    }
    assert list(an_allowlist_was_self_tested_both_ways({"network": network})) == []
    assert list(ok_means_observed_equals_expected({"network": network})) == []


@IN_NAMESPACE
def test_an_allowlist_whose_open_way_is_shut_is_inconclusive(
    canary: HostCanary, tmp_path: Path, state: EnforcementState
) -> None:
    policy = EgressPolicy.parse(["localhost:1"], ["127.0.0.0/8", "::1/128"])
    proxy = NetworkProxy.start(policy, tmp_path)
    try:
        outcome = proxied_test(canary, proxy, canary.port).run(policy, state)
    finally:
        proxy.close()
    assert outcome.result == "inconclusive"


@IN_NAMESPACE
def test_a_proxy_that_is_not_there_is_inconclusive(canary: HostCanary, tmp_path: Path, state: EnforcementState) -> None:
    policy = EgressPolicy.parse([f"localhost:{canary.port}"], ["127.0.0.0/8", "::1/128"])
    proxy = NetworkProxy.start(policy, tmp_path)
    proxy.close()
    assert proxied_test(canary, proxy, canary.port).run(policy, state).result == "inconclusive"


def test_an_open_network_under_the_name_of_an_allowlist_fails(
    canary: HostCanary, tmp_path: Path, state: EnforcementState
) -> None:
    policy = EgressPolicy.parse([f"localhost:{canary.port}"], ["127.0.0.0/8", "::1/128"])
    pair = ProxiedPair("host", ("localhost", canary.port), ("localhost", 1))
    outcome = make(canary, run_here, proxied=pair).run(policy, state)
    assert outcome.result == "fail"
