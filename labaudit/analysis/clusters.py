"""The stored dataset and the name of a field to the cluster that each task belongs to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.wording import coded
from labaudit.core.canonical import canonical_bytes
from labaudit.errors import LabauditError
from labaudit.planning.dataset import read_dataset
from labaudit.records.comparisons import Coded
from labaudit.records.resolved import ResolvedExperiment
from labaudit.store.run_folder import RunFolder


def read_clusters(
    run: RunFolder, resolved: ResolvedExperiment, tasks: Sequence[str]
) -> tuple[NDArray[np.int64] | None, list[Coded]]:
    """A code per task, or None where tasks are not clustered, with what a reader should know about it."""
    field = resolved.analysis_plan.cluster
    if field is None:
        return None, []
    stored = resolved.dataset
    try:
        data = run.artifacts.get(stored.artifact_ref)
        dataset = read_dataset(
            data, stored.format, name=stored.path, where=stored.path, id_field=stored.id_field, limit=stored.limit
        )
    except LabauditError:
        return None, [coded("cluster_unreadable", field=field)]
    given = dict(zip(dataset.ids, dataset.tasks, strict=True))
    labels, lacking = [], 0
    for task in tasks:
        value = given.get(task, {}).get(field)
        lacking += value is None
        # A task's own id keeps it alone; the tag in front keeps it apart from a cluster that is called the same.
        labels.append(("task", task) if value is None else ("cluster", canonical_bytes(value).decode()))
    codes = {label: code for code, label in enumerate(sorted(set(labels)))}
    notes = [coded("cluster_label_missing", tasks=lacking, field=field)] if lacking else []
    return np.array([codes[label] for label in labels], dtype=np.int64), notes
