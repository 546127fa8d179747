"""A Dask cluster under this project's rules: TLS beyond loopback, no silent reruns, workers known by their keys.

Dask runs whatever code it is sent, so a connection that is not encrypted and authenticated is refused unless it never
leaves this machine.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from labaudit.errors import BadInput, EnvironmentLacks, PolicyUnmet
from labaudit.runner.remote.receipt import worker_key

RESOURCE = "sandbox"
CONNECT_SECONDS = 20
# Schedulers and workers are often started together with the run.
FIRST_WORKER_SECONDS = 20
# Asking costs a scheduler more than a small trial does; nobody needs to know sooner that a worker came or went.
LISTED_SECONDS = 0.4


@dataclass(frozen=True)
class WorkerIdentity:
    """A worker as it introduced itself."""

    address: str
    worker_id: str
    key_id: str
    host: str
    base: str


@dataclass
class Cluster:
    """A connection, and the workers that are known by now."""

    client: Any
    address: str
    certificate_sha256: str | None
    workers: dict[str, WorkerIdentity] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    _listed: dict[str, Any] | None = None
    _listed_at: float = 0.0

    def introduce(self) -> dict[str, WorkerIdentity]:
        """Asks workers that are new who they are; a worker keeps the key that it came with.

        One that restarted under its old address has another folder, and is new.
        """
        present = self.present()
        new = [address for address, info in present.items() if not self._is_known(address, info)]
        if new:
            for address, found in self.client.run(introduce_worker, workers=new, on_error="ignore").items():
                self.workers[address] = WorkerIdentity(address=address, **found)
        return {address: self.workers[address] for address, info in present.items() if self._is_known(address, info)}

    def _is_known(self, address: str, info: dict[str, Any]) -> bool:
        known = self.workers.get(address)
        return known is not None and known.base == str(worker_base(str(info["local_directory"])))

    def present(self, *, fresh: bool = False) -> dict[str, Any]:
        """The workers as the scheduler listed them a moment ago at most; ConnectionError when it is gone."""
        now = time.monotonic()
        if fresh or self._listed is None or now - self._listed_at > LISTED_SECONDS:
            self._listed = self.client.scheduler_info(n_workers=-1).get("workers")
            self._listed_at = now
        if self._listed is None:
            raise ConnectionError("the scheduler does not answer")
        return dict(self._listed)

    def usable(self) -> list[WorkerIdentity]:
        """Workers that are here and were not refused."""
        return [worker for worker in self.introduce().values() if worker.worker_id not in self.refused]

    def resources(self) -> dict[str, int] | None:
        """One sandbox slot per trial, where the workers declare such slots."""
        info = self.present().values()
        return {RESOURCE: 1} if any(RESOURCE in worker.get("resources", {}) for worker in info) else None

    def slots(self) -> int:
        """How many trials can run at once."""
        info = self.present().values()
        if self.resources() is not None:
            return max(1, sum(int(worker.get("resources", {}).get(RESOURCE, 0)) for worker in info))
        return max(1, sum(int(worker.get("nthreads", 1)) for worker in info))


def _quieten_dask() -> None:
    """Dask tells a lost connection with tracebacks of its own; every loss is told by us, in a sentence."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def connect(address: str | None, workers: int) -> Iterator[Cluster]:
    """The scheduler at `address`, or a cluster on this machine for as long as the block lasts."""
    require_dask()
    from distributed import Client, LocalCluster

    _quieten_dask()
    with ExitStack() as stack:
        if address is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="labaudit-dask-"))
            local = LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                host="127.0.0.1",
                resources={RESOURCE: 1},
                local_directory=folder,
                silence_logs=50,
            )
            stack.callback(local.close)
            client: Any = Client(local)  # type: ignore[no-untyped-call]
        else:
            require_tls(address)
            try:
                client = Client(address, timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]
            except TypeError as error:
                hint = "name ca-file and the client's certificate under distributed.comm.tls: docs/dask.md"
                raise EnvironmentLacks("Dask's configuration has no certificates", where=address, hint=hint) from error
            except (OSError, TimeoutError, ValueError) as error:
                raise EnvironmentLacks(f"no scheduler answers: {error}", where=address) from error
        stack.callback(_close, client)
        # A task whose worker died must come back to us as lost, not be rerun behind our back.
        before = client.run_on_scheduler(set_allowed_failures, count=0)
        stack.callback(_restore, client, before)
        cluster = Cluster(client, client.scheduler.address, certificate_fingerprint(client))
        deadline = time.monotonic() + FIRST_WORKER_SECONDS
        while not cluster.usable() and time.monotonic() < deadline:
            time.sleep(0.5)
        if not cluster.usable():
            hint = "start some: dask worker --scheduler-file …"
            raise EnvironmentLacks("the scheduler has no worker", where=cluster.address, hint=hint)
        yield cluster


def require_dask() -> None:
    """EnvironmentLacks where the extra is not installed."""
    if find_spec("distributed") is None:
        hint = "install the extra: labaudit[dask]"
        raise EnvironmentLacks("Dask is not installed", where="--executor dask", hint=hint)


def require_tls(address: str) -> None:
    """PolicyUnmet for a plain connection that leaves this machine."""
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        if parts.hostname is None or parts.port is None:
            raise ValueError(address)
    except ValueError as error:
        raise BadInput(f"{address!r} is no scheduler address", hint="tls://host:port") from error
    if parts.scheme == "tls":
        return
    loopback = parts.hostname == "localhost"
    with suppress(ValueError):
        loopback = ipaddress.ip_address(parts.hostname).is_loopback
    if parts.scheme != "tcp" or not loopback:
        raise PolicyUnmet(
            "a scheduler beyond this machine must be reached over TLS: Dask runs the code it is sent",
            where=address,
            hint="tls://host:port, with certificates in Dask's configuration (distributed.comm.tls)",
        )


def set_allowed_failures(count: int, dask_scheduler: Any = None) -> int:
    """On the scheduler: how many dead workers a task survives; returns what it was."""
    before = int(dask_scheduler.allowed_failures)
    dask_scheduler.allowed_failures = count
    return before


def introduce_worker(dask_worker: Any = None) -> dict[str, str]:
    """On a worker: who it is. Its key lies in its own folder unless its environment names another."""
    base = worker_base(dask_worker.local_directory)
    base.mkdir(parents=True, exist_ok=True)
    key = worker_key(base)
    return {
        "worker_id": str(dask_worker.name),
        "key_id": key.public.keyid,
        "host": platform.node(),
        "base": str(base),
    }


def worker_base(local_directory: str) -> Path:
    """Where a worker process keeps its key and its working copies: below a folder that Dask makes for each process."""
    return Path(local_directory) / "labaudit"


def certificate_fingerprint(client: Any) -> str | None:
    """The sha256 of the scheduler's certificate as this connection saw it; None without TLS."""
    stream = getattr(getattr(client.scheduler_comm, "comm", None), "stream", None)
    read = getattr(getattr(stream, "socket", None), "getpeercert", None)
    certificate = read(binary_form=True) if read is not None else None
    return hashlib.sha256(certificate).hexdigest() if certificate else None


def _close(client: Any) -> None:
    with suppress(Exception):
        client.close(timeout=5)


def _restore(client: Any, before: int) -> None:
    with suppress(Exception):
        client.run_on_scheduler(set_allowed_failures, count=before)
