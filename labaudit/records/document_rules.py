"""The numbered rules that a schema cannot say, each a small function from a document to findings.

A rule reads what it needs and is silent about the rest: a document that breaks its schema as well is the schema's
business, so no rule raises on one. The caller decides what a finding means.

    M1  otel_names_where_its_traces_go            harness_manifest_v1
    M2  sdk_levels_have_a_control_plane           harness_manifest_v1
    M3  exec_digest_above_cli_basic               harness_manifest_v1
    N1  an_allowlist_has_hosts                    state_inventory_v1, trial_input_v1, resolved_experiment_v0_3
    N2  an_allowlist_has_a_known_enforcement      state_inventory_v1
    N3  an_allowlist_was_self_tested_both_ways    state_inventory_v1
    N4  ok_means_observed_equals_expected         state_inventory_v1
    O1  an_error_outcome_has_an_error             trial_output_v1
    O2  artifact_paths_stay_inside_out            trial_output_v1
    J1  numbers_are_finite                        every document
    J2  keys_are_unique                           every document, from its bytes
    F, T, I, K, G and R rules of the files that the runner writes: see ledger_rules
    Q rules of the analysis files: see analysis_rules
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable, Iterator
from typing import Any

from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput
from labaudit.records import analysis_rules, ledger_rules
from labaudit.records.finding import Finding, json_path

Rule = Callable[[Any], Iterator[Finding]]


def check(schema_name: str, value: object) -> list[Finding]:
    """All findings of the rules for one kind of document."""
    rules = (*RULES.get(schema_name, ()), numbers_are_finite)
    return [finding for rule in rules for finding in rule(value)]


def check_trial_output(value: object, *, out: str = "/out") -> list[Finding]:
    """The rules of trial_output.json for a trial whose out folder is `out`."""
    found = [*an_error_outcome_has_an_error(value), *artifact_paths_stay_inside_out(value, out=out)]
    return [*found, *numbers_are_finite(value)]


def check_harness_manifest(value: object) -> list[Finding]:
    """The rules of harness_manifest.json."""
    return check("harness_manifest_v1", value)


def check_state_inventory(value: object) -> list[Finding]:
    """The rules of state_inventory.json."""
    return check("state_inventory_v1", value)


def otel_names_where_its_traces_go(value: Any) -> Iterator[Finding]:
    """M1: level otel has a tracing mode other than none, and the endpoint or path that the mode needs."""
    if _at(value, "integration_level") != "otel":
        return
    mode = _at(value, "tracing", "mode")
    if mode not in ("otlp", "manifest"):
        yield Finding("$.tracing.mode", f"level otel needs tracing by otlp or manifest, not {mode!r}", "M1")
        return
    key = "otlp_endpoint" if mode == "otlp" else "trace_manifest_path"
    if not _at(value, "tracing", key):
        yield Finding("$.tracing", f"tracing mode {mode} needs {key}", "M1")


def sdk_levels_have_a_control_plane(value: Any) -> Iterator[Finding]:
    """M2: sdk_control, and sdk_full which includes it, say how they are controlled."""
    level = _at(value, "integration_level")
    if level in ("sdk_control", "sdk_full") and not _at(value, "control_plane"):
        yield Finding("$", f"level {level} needs control_plane", "M2")


def exec_digest_above_cli_basic(value: Any) -> Iterator[Finding]:
    """M3: a harness that claims more than cli_basic says which executable it is."""
    level = _at(value, "integration_level")
    if level is not None and level != "cli_basic" and not _at(value, "harness", "exec_digest"):
        yield Finding("$.harness", f"level {level} needs harness.exec_digest", "M3")


def an_allowlist_has_hosts(value: Any) -> Iterator[Finding]:
    """N1: an allowlist of nothing is mode none under another name."""
    for path, mode_key in _NETWORK_BLOCKS:
        network = _at(value, *path)
        if _at(network, mode_key) == "allowlist_enforced" and not _at(network, "allowed_hosts"):
            yield Finding(json_path(path), "allowlist_enforced needs at least one of allowed_hosts", "N1")
            return


# Where a network block stands: state_inventory (effective, requested), trial_input, resolved_experiment.
_NETWORK_BLOCKS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("network",), "mode_effective"),
    (("network",), "mode_requested"),
    (("runtime", "network"), "mode_requested"),
    (("runtime", "network"), "mode"),
)


def an_allowlist_has_a_known_enforcement(value: Any) -> Iterator[Finding]:
    """N2: allowlist_enforced in force is enforced by something, and by something that holds back."""
    enforcement = _at(value, "network", "enforcement_effective")
    if _allowlist_in_force(value) and enforcement not in ("netns_iptables", "sidecar_proxy", "unix_socket_proxy"):
        yield Finding("$.network.enforcement_effective", f"{enforcement!r} cannot enforce an allowlist", "N2")


def an_allowlist_was_self_tested_both_ways(value: Any) -> Iterator[Finding]:
    """N3: one case that must pass and one that must not; one alone shows nothing."""
    if not _allowlist_in_force(value):
        return
    test = _at(value, "network", "egress_self_test")
    if _at(test, "performed") is not True:
        yield Finding("$.network.egress_self_test", "allowlist_enforced needs a self-test, none was performed", "N3")
        return
    expected = {_at(case, "expected") for case in _items(_at(test, "cases"))}
    for wanted in ("allow", "block"):
        if wanted not in expected:
            yield Finding("$.network.egress_self_test.cases", f"the self-test has no {wanted} case", "N3")


def ok_means_observed_equals_expected(value: Any) -> Iterator[Finding]:
    """N4: `ok` is computed, not chosen."""
    for index, case in enumerate(_items(_at(value, "network", "egress_self_test", "cases"))):
        holds = _at(case, "observed") == _at(case, "expected")
        if _at(case, "ok") is not holds:
            told = f"ok is {_at(case, 'ok')!r} while {_at(case, 'expected')!r} was expected"
            path = f"$.network.egress_self_test.cases[{index}].ok"
            yield Finding(path, f"{told} and {_at(case, 'observed')!r} observed", "N4")


def an_error_outcome_has_an_error(value: Any) -> Iterator[Finding]:
    """O1: outcome error says what went wrong."""
    if _at(value, "outcome") == "error" and not _at(value, "error"):
        yield Finding("$", "outcome error needs an error object that says what went wrong", "O1")


def artifact_paths_stay_inside_out(value: Any, *, out: str = "/out") -> Iterator[Finding]:
    """O2: a declared artifact lies in the trial's out folder; a relative path counts from there."""
    for index, artifact in enumerate(_items(_at(value, "artifacts"))):
        path = _at(artifact, "path")
        if isinstance(path, str) and not _is_inside(path, out):
            yield Finding(f"$.artifacts[{index}].path", f"{path!r} is not inside {out}", "O2")


def numbers_are_finite(value: Any) -> Iterator[Finding]:
    """J1: NaN and infinity are no JSON; they can only come from code."""
    open_places: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while open_places:
        path, item = open_places.pop()
        if isinstance(item, float) and not math.isfinite(item):
            yield Finding(json_path(path), f"{item} is no JSON number", "J1")
        elif isinstance(item, dict):
            open_places.extend(((*path, str(key)), child) for key, child in item.items())
        elif isinstance(item, list | tuple):
            open_places.extend(((*path, index), child) for index, child in enumerate(item))


def keys_are_unique(data: bytes) -> Iterator[Finding]:
    """J2: the bytes hold one JSON value that every reader reads alike; duplicate keys are the usual breach."""
    try:
        parse_json(data)
    except BadInput as error:
        yield Finding("$", error.what, "J2")


def _allowlist_in_force(value: Any) -> bool:
    return bool(_at(value, "network", "mode_effective") == "allowlist_enforced")


def _is_inside(path: str, folder: str) -> bool:
    if "\x00" in path or ".." in path.split("/"):
        return False
    root = posixpath.normpath(folder)
    full = posixpath.normpath(posixpath.join(root, path))
    return full.startswith(root.rstrip("/") + "/")


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


RULES: dict[str, tuple[Rule, ...]] = {
    "harness_manifest_v1": (
        otel_names_where_its_traces_go,
        sdk_levels_have_a_control_plane,
        exec_digest_above_cli_basic,
    ),
    "state_inventory_v1": (
        an_allowlist_has_hosts,
        an_allowlist_has_a_known_enforcement,
        an_allowlist_was_self_tested_both_ways,
        ok_means_observed_equals_expected,
    ),
    "trial_input_v1": (an_allowlist_has_hosts,),
    "resolved_experiment_v0_3": (an_allowlist_has_hosts, ledger_rules.the_baseline_is_the_first_variant),
    "trial_output_v1": (an_error_outcome_has_an_error, artifact_paths_stay_inside_out),
    **ledger_rules.RULES,
    **analysis_rules.RULES,
}
