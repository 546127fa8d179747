"""What was observed of a trial's sandbox and network to its isolation grade: sealed > bounded > leaky.

`sealed` needs no network at all and every limit in force. An enforced allowlist is `bounded`: a way out exists, and
only its destinations were held. What was asked for plays no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from labaudit.evidence.observation import NotObserved, ObservedNetwork, ObservedTrial
from labaudit.grading.scale import CapFinding, grade
from labaudit.records.grades import Grade

INVENTORY = "state_inventory.json"
ENFORCED = {
    "none": {"docker_none", "bubblewrap_netns"},
    "allowlist_enforced": {"unix_socket_proxy", "sidecar_proxy", "netns_iptables"},
}
PROVIDER_TOOLS = (
    "Egress control sees connections of the sandbox only. Tools that a model provider runs on its own side, such as a "
    "web search behind an allowed model API, are invisible to it."
)


def grade_isolation(observed: ObservedTrial) -> Grade[str]:
    """The grade of one trial."""
    caps = [cap for rule in _RULES for cap in rule(observed)]
    sources = [name for name in ("framework_events", "network_proxy") if observed.sources[name].present]
    return grade("isolation", caps, sources)  # type: ignore[arg-type]


def _i01_an_imported_trial_was_not_watched(observed: ObservedTrial) -> Iterator[CapFinding]:
    if observed.evidence_origin == "imported":
        yield CapFinding(
            "I01", "not_observed", "trial_record.json", "Another tool ran this trial; nobody here saw how."
        )


def _i02_no_inventory_no_grade(observed: ObservedTrial) -> Iterator[CapFinding]:
    if observed.evidence_origin != "imported" and isinstance(observed.network, NotObserved):
        yield CapFinding("I02", "not_observed", INVENTORY, f"The sandbox was not observed: {observed.network.reason}.")


def _i03_a_broken_event_chain_supports_nothing(observed: ObservedTrial) -> Iterator[CapFinding]:
    if not observed.events.chain_ok:
        why = observed.events.problem or "the log is not there or not sealed"
        yield CapFinding("I03", "not_observed", "events.jsonl", f"The framework's own log does not hold: {why}.")


def _i04_the_process_engine_isolates_nothing(observed: ObservedTrial) -> Iterator[CapFinding]:
    if observed.engine == "process":
        yield CapFinding("I04", "leaky", INVENTORY, "The trial ran as an ordinary process, without a sandbox.")


def _i05_an_open_network_leaks(observed: ObservedTrial) -> Iterator[CapFinding]:
    network = observed.network
    if isinstance(network, ObservedNetwork) and network.mode_effective == "full":
        yield CapFinding("I05", "leaky", INVENTORY, "The trial had an open network.")


def _i06_the_mode_asked_for_must_be_the_mode_found(observed: ObservedTrial) -> Iterator[CapFinding]:
    network = observed.network
    if isinstance(network, ObservedNetwork) and network.mode_effective != network.mode_requested:
        said = f"Network {network.mode_requested} was asked for and {network.mode_effective} was found."
        yield CapFinding("I06", "leaky", INVENTORY, said)


def _i07_enforcement_must_have_been_observed(observed: ObservedTrial) -> Iterator[CapFinding]:
    network = observed.network
    if not isinstance(network, ObservedNetwork) or network.mode_effective == "full":
        return
    if network.enforcement not in ENFORCED[network.mode_effective]:
        said = f"No enforcement of network {network.mode_effective} was observed (found: {network.enforcement})."
        yield CapFinding("I07", "leaky", INVENTORY, said)


def _i08_an_allowlist_is_a_way_out(observed: ObservedTrial) -> Iterator[CapFinding]:
    network = observed.network
    if isinstance(network, ObservedNetwork) and network.mode_effective == "allowlist_enforced":
        said = f"The proxy allowed {len(network.allowed_hosts)} destination(s); what passed inside them was not seen."
        yield CapFinding("I08", "bounded", "network_events.jsonl", said)


def _i09_an_allowlist_needs_its_self_test(observed: ObservedTrial) -> Iterator[CapFinding]:
    network = observed.network
    if not isinstance(network, ObservedNetwork) or network.mode_requested != "allowlist_enforced":
        return
    if network.self_test_ok:
        return
    if not network.self_test_performed:
        yield CapFinding("I09", "leaky", INVENTORY, "No egress self-test was performed.")
    elif any(case.expected == "block" and case.observed == "allow" for case in network.self_test_cases):
        yield CapFinding("I09", "leaky", INVENTORY, "The egress self-test found a way around the allowlist.")
    else:
        yield CapFinding("I09", "leaky", INVENTORY, "The egress self-test was inconclusive.")


def _i10_bypass_risk_counts(observed: ObservedTrial) -> Iterator[CapFinding]:
    network = observed.network
    if not isinstance(network, ObservedNetwork):
        return
    risk = network.bypass_risk
    if isinstance(risk, NotObserved):
        yield CapFinding("I10", "bounded", INVENTORY, f"The bypass risk was not observed: {risk.reason}.")
    elif risk in {"high", "unknown"}:
        yield CapFinding("I10", "leaky", INVENTORY, f"The bypass risk is {risk}.")
    elif risk == "residual":
        yield CapFinding("I10", "bounded", INVENTORY, "A residual bypass risk is stated.")


def _i11_state_leaks_count(observed: ObservedTrial) -> Iterator[CapFinding]:
    if isinstance(observed.violations, NotObserved):
        if not isinstance(observed.network, NotObserved):
            said = f"Leaks were not looked for: {observed.violations.reason}."
            yield CapFinding("I11", "bounded", INVENTORY, said)
    elif observed.violations.state_leak:
        notes = "; ".join(observed.violations.notes) or "see the inventory's notes"
        yield CapFinding("I11", "leaky", INVENTORY, f"State leaked out of the trial's surfaces: {notes}.")


def _i12_a_broken_profile_invariant_counts(observed: ObservedTrial) -> Iterator[CapFinding]:
    if not isinstance(observed.violations, NotObserved) and observed.violations.profile_invariant:
        notes = "; ".join(observed.violations.notes) or "see the inventory's notes"
        yield CapFinding("I12", "bounded", INVENTORY, f"Profile {observed.profile} was violated: {notes}.")


def _i13_limits_must_be_in_force(observed: ObservedTrial) -> Iterator[CapFinding]:
    if isinstance(observed.unenforced, NotObserved):
        if not isinstance(observed.network, NotObserved):
            said = f"Whether the limits held was not observed: {observed.unenforced.reason}."
            yield CapFinding("I13", "bounded", INVENTORY, said)
        return
    for limit in observed.unenforced:
        yield CapFinding("I13", "bounded", INVENTORY, f"Not in force: {limit.what} ({limit.why}).")


def _i14_a_worker_outside_the_trust_set_speaks_for_itself(observed: ObservedTrial) -> Iterator[CapFinding]:
    worker = observed.worker
    if worker is not None and not worker.trusted:
        who = f"Worker {worker.worker_id} ({worker.key_id}) is not in the experiment's trust set"
        yield CapFinding("I14", "leaky", "receipt.json", f"{who}; how the trial was confined is its word alone.")


def _i15_a_shared_proxy_counts(observed: ObservedTrial) -> Iterator[CapFinding]:
    if isinstance(observed.network, ObservedNetwork) and observed.network.pooled:
        said = "The proxy was shared with other trials of the worker, one after another."
        yield CapFinding("I15", "bounded", INVENTORY, said)


def _i16_a_dead_proxy_may_have_kept_lines_to_itself(observed: ObservedTrial) -> Iterator[CapFinding]:
    if isinstance(observed.network, ObservedNetwork) and observed.network.proxy_died:
        said = "The proxy was not alive at the end; connections that were open when it died have no line in its log."
        yield CapFinding("I16", "bounded", "network_events.jsonl", said)


_RULES: tuple[Callable[[ObservedTrial], Iterator[CapFinding]], ...] = (
    _i01_an_imported_trial_was_not_watched,
    _i02_no_inventory_no_grade,
    _i03_a_broken_event_chain_supports_nothing,
    _i04_the_process_engine_isolates_nothing,
    _i05_an_open_network_leaks,
    _i06_the_mode_asked_for_must_be_the_mode_found,
    _i07_enforcement_must_have_been_observed,
    _i08_an_allowlist_is_a_way_out,
    _i09_an_allowlist_needs_its_self_test,
    _i10_bypass_risk_counts,
    _i11_state_leaks_count,
    _i12_a_broken_profile_invariant_counts,
    _i13_limits_must_be_in_force,
    _i14_a_worker_outside_the_trust_set_speaks_for_itself,
    _i15_a_shared_proxy_counts,
    _i16_a_dead_proxy_may_have_kept_lines_to_itself,
)
