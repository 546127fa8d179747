"""Ids of grading rules to the condition that each asks for, so that a page can also show the rules that were met.

`grades.json` names only rules that lowered a grade. A rule that this table does not know is shown by its own sentence.
"""

from __future__ import annotations

RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "isolation": (
        ("I01", "The trial ran here, not in another tool."),
        ("I02", "The sandbox was observed and an inventory written."),
        ("I03", "The framework's event log is sealed and its chain holds."),
        ("I04", "The trial ran in a sandbox, not as an ordinary process."),
        ("I05", "The trial had no open network."),
        ("I06", "The network mode that was found is the one that was asked for."),
        ("I07", "The enforcement of that mode was observed."),
        ("I08", "There was no way out at all, not even to allowed hosts."),
        ("I09", "Where there is an allowlist, its egress self-test passed."),
        ("I10", "The bypass risk was observed and is none."),
        ("I11", "No state leaked out of the trial's surfaces."),
        ("I12", "The profile's invariants held."),
        ("I13", "Every limit was in force."),
        ("I14", "The trial ran here, or on a worker that the experiment trusts."),
        ("I15", "No proxy was shared with other trials."),
        ("I16", "The proxy was alive to the end, so that its log is whole."),
    ),
    "replay": (
        ("R01", "The trial ran here, so that it can be executed again."),
        ("R02", "The observed integration level is sdk_full."),
        ("R03", "The harness manifest counts, where one is required."),
        ("R04", "The hook stream keeps its rules."),
        ("R05", "Every step end is acknowledged."),
        ("R06", "Causal boundaries are all recorded."),
        ("R07", "The attempt ended."),
    ),
    "interpretability": (
        ("P01", "The attempt was not lost."),
        ("P02", "There is a hook stream."),
        ("P03", "The hook stream keeps its rules."),
        ("P04", "The stream has step events."),
        ("P05", "Every step end is acknowledged."),
        ("P06", "Every causal event names its step."),
    ),
    "comparability": (
        ("C00", "Asked of the run, not of a single trial."),
        ("C01", "The run has an analysis."),
        ("C02", "There is more than a baseline."),
        ("C03", "The plan names a primary metric."),
        ("C04", "Every primary comparison can be estimated."),
        ("C05", "The arms ran the same tasks."),
        ("C06", "No value is missing."),
        ("C07", "The arms do not lose trials at different rates."),
        ("C08", "No primary metric is reported by the harness on itself."),
        ("C09", "No trial was lost or excluded."),
        ("C10", "No trial needed more than one attempt."),
        ("C11", "Order, blocking and retries are known."),
    ),
    "provenance": (
        ("V01", "The run is signed; no grade file can say so, since it is written before."),
        ("V02", "There is an event log."),
        ("V03", "The event log's chain holds."),
        ("V04", "The event log was sealed."),
    ),
}

# The file that a rule reads, by rule or by the first letter of its scale: the trial's, or for comparability the run's.
READS = {
    "I": "state_inventory.json", "R": "harness_manifest.json", "P": "harness_events.jsonl",
    "C": "analysis/comparisons.json", "V": "events.jsonl",
    **dict.fromkeys(("I01", "I14", "R01"), "trial_record.json"),
    **dict.fromkeys(("I03", "P01", "R07"), "events.jsonl"),
    **dict.fromkeys(("I08", "I16"), "network_events.jsonl"),
    **dict.fromkeys(("R04", "R05"), "harness_events.jsonl"),
    "R06": "sdk_boundaries.jsonl",
    **dict.fromkeys(("C09", "C10", "C11"), "inclusion.json"),
}  # fmt: skip

# Rules about something that a trial may not have. Where it is not there the rule lowers nothing, and is not met either.
NEEDS = {
    **dict.fromkeys(("R04", "R05", "P03", "P04", "P05", "P06"), "hooks"),
    "R06": "sdk",
    **dict.fromkeys(("I15", "I16"), "network_proxy"),
}
