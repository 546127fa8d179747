"""A cluster to `executor.json`: who took part in the run, and what could and could not be checked about them.

The file is part of the sealed run. A resumed run may meet another scheduler and other workers; those of before stay
listed, because trials of theirs are in the run.
"""

from __future__ import annotations

from typing import Any

from labaudit.core.clock import rfc3339
from labaudit.core.strict_json import parse_object
from labaudit.runner.context import RunContext
from labaudit.runner.remote.cluster import Cluster
from labaudit.runner.remote.ingest import CHECKED, NOT_CHECKED
from labaudit.store import atomic

EXECUTOR_FILE = "executor.json"


def describe(ctx: RunContext, cluster: Cluster) -> None:
    """Writes the file, with what an earlier session of this run wrote."""
    path = ctx.run.path / EXECUTOR_FILE
    before: dict[str, Any] = parse_object(atomic.read_bytes(path), where=str(path)) if path.is_file() else {}
    scheduler = {
        "tls": cluster.address.startswith("tls://"),
        "certificate_sha256": cluster.certificate_sha256,
    }
    schedulers = [one for one in before.get("schedulers", []) if one != scheduler]
    trusted = set(ctx.resolved.executor.trusted_workers)
    workers = {(str(one["worker_id"]), str(one["key_id"])): one for one in before.get("workers", [])}
    for worker in cluster.workers.values():
        workers[worker.worker_id, worker.key_id] = {
            "worker_id": worker.worker_id,
            "key_id": worker.key_id,
            "host": worker.host,
            "trusted": worker.key_id in trusted,
            "refused": worker.worker_id in cluster.refused,
        }
    document = {
        "schema_version": "executor_v1",
        "kind": "dask",
        "scheduler_tls": scheduler["tls"],
        "scheduler_certificate_sha256": scheduler["certificate_sha256"],
        "schedulers": [*schedulers, scheduler],
        "workers": [workers[key] for key in sorted(workers)],
        "checked": list(CHECKED),
        "not_checked": list(NOT_CHECKED),
        "written_at": rfc3339(ctx.clock.now()),
    }
    atomic.write_json(path, document)
