"""Finished trials to effects with honest intervals, and to the evidence that might explain them.

The reading order: `trials` (what was observed, as rows and as a table), `effects` (the plan, missing values, the effect
of one variant on one metric), `statistics` (the numbers underneath), `explain` (exemplars, suspects, aligned diffs) and
`runner` (all of it, corrected by families, written as files). Numeric parts are values in, values out; randomness
enters as the seed of the resolved experiment.

`trials.rows` needs no numeric library, so that a verifier can rebuild the rows; the rest loads when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labaudit.analysis.runner import Analysis
    from labaudit.store.run_folder import RunFolder


def analyse_run(run: RunFolder, *, processes: int = 1) -> Analysis:
    """Carries out the plan of a run that is not yet sealed, and writes all of its `analysis/` folder.

    Reads `resolved_experiment.json`, `inclusion.json` (else `schedule.jsonl`, else the trial folders), and of each
    trial `trial_record.json`, `metrics.json` (else `trial_output.json`, labelled), and where they are there
    `harness_events.jsonl`, `network_events.jsonl`, `events.jsonl`, `state_inventory.json`, `artifacts.jsonl`,
    `grades.json`, `receipt.json`; the dataset artifact when the plan names a cluster field.

    Writes `trials.parquet`, `paired_diffs.jsonl`, `paired_diffs.parquet`, `diffs/<variant>.jsonl`, `exemplars.json`,
    `suspects.json`, `comparisons.json` and, last, `summary.json`, each whole or not at all; other files in the folder
    are removed. Returns what was found: `.comparisons` and `.summary` are the records that grading reads.

    BadInput when the run is sealed, has no plan or no scheduled trial, or a file cannot be read as what it should be.
    """
    from labaudit.analysis.runner import analyse_run as analyse

    return analyse(run, processes=processes)


__all__ = ["analyse_run"]
