"""A run to when its plan was registered, as far as its own sealed files tell.

The time stands in the run's id, which the signed manifest carries; it is the clock of the machine that ran it. The
signed `resolve` link names the plan's digest and no time. The lab's registry is no part of the run, so it is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from labaudit.attest.dsse import parse_envelope
from labaudit.attest.keys import PublicKey
from labaudit.core.strict_json import parse_object
from labaudit.errors import LabauditError
from labaudit.site.reading.published_run import PublishedRun
from labaudit.site.reading.signed_statements import named_key
from labaudit.store import atomic

_RUN_ID = re.compile(r"run-(\d{8}T\d{6}Z)-([0-9a-f]{8})(?:-\d+)?")
_LARGEST_LINK = 1 << 20


@dataclass(frozen=True)
class Registration:
    """`at` is None when the id tells no time; `link` is the path of a resolve link that names this plan."""

    at: datetime | None
    fits_plan: bool
    link: str
    link_valid: bool | None

    def fits(self, first_event: datetime | None) -> bool:
        """False when an event is older than the registration, which no clock that only goes forward gives."""
        return self.at is None or first_event is None or first_event >= self.at


def read_registration(run: PublishedRun) -> Registration:
    """What the id and the link say; a link that is unreadable or about another plan is none."""
    at, stamp = _told_by_id(run.run_id)
    plan = str(run.manifest.get("resolved_digest", ""))
    path, valid = next(_links(run, plan), ("", None))
    return Registration(at, bool(stamp) and plan.removeprefix("sha256:").startswith(stamp), path, valid)


def _told_by_id(run_id: str) -> tuple[datetime | None, str]:
    found = _RUN_ID.fullmatch(run_id)
    if found is None:
        return None, ""
    try:
        return datetime.strptime(found[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC), found[2]
    except ValueError:
        return None, found[2]


def _links(run: PublishedRun, plan: str) -> Iterator[tuple[str, bool | None]]:
    key = _key(run)
    for path in sorted(run.folder.attestations.glob("resolve.*.link")):
        name = path.relative_to(run.folder.path).as_posix()
        try:
            data = atomic.read_bytes(path, max_bytes=_LARGEST_LINK)
            envelope = parse_envelope(parse_object(data, where=name), where=name)
            products = parse_object(envelope.payload, where=name).get("products")
        except LabauditError:
            continue
        product = products.get("resolved_experiment.json") if isinstance(products, dict) else None
        if isinstance(product, dict) and f"sha256:{product.get('sha256')}" == plan:
            yield name, None if key is None else key.verifies(envelope.signature, envelope.signed_bytes)


def _key(run: PublishedRun) -> PublicKey | None:
    pem = next((named_key(item.statement) for item in run.statements if item.kind == "run"), None)
    try:
        return PublicKey.from_pem(pem.encode()) if pem else None
    except LabauditError:
        return None
