"""Components to an SPDX 2.3 document in JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from labaudit import __version__
from labaudit.attest.sbom.component import Component, SbomSubject
from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import sha256_hex

ROOT_ID = "SPDXRef-Subject"


def spdx_document(subject: SbomSubject, components: Sequence[Component], *, created: datetime) -> bytes:
    """The document's bytes; the same inputs give the same bytes."""
    packages = [_root(subject)]
    used: Counter[str] = Counter()
    relationships = [_relation("SPDXRef-DOCUMENT", "DESCRIBES", ROOT_ID)]
    for item in components:
        used[item.spdx_id] += 1
        number = used[item.spdx_id]
        name = item.spdx_id if number == 1 else f"{item.spdx_id}-{number}"
        packages.append(_package(item, name))
        relationships.append(_relation(ROOT_ID, "CONTAINS", name))
    body: dict[str, Any] = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{subject.kind}-{subject.hex[:12]}",
        "creationInfo": {
            "created": created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: labaudit-{__version__}"],
        },
        "documentDescribes": [ROOT_ID],
        "packages": packages,
        "relationships": relationships,
    }
    # A namespace must be unique to the document; its content makes it so without a random number.
    stamp = sha256_hex(canonical_bytes(body))[:32]
    body["documentNamespace"] = f"https://agent-lab.local/spdx/{subject.kind}/{stamp}"
    return canonical_bytes(body)


def _root(subject: SbomSubject) -> dict[str, Any]:
    return {
        "SPDXID": ROOT_ID,
        "name": subject.name,
        "versionInfo": subject.digest,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": "CONTAINER" if subject.kind == "image" else "APPLICATION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": subject.hex}],
    }


def _package(item: Component, name: str) -> dict[str, Any]:
    package: dict[str, Any] = {
        "SPDXID": name,
        "name": item.name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": item.purl}
        ],
    }
    if item.version:
        package["versionInfo"] = item.version
    if item.licence:
        package["licenseComments"] = f"declared by the package: {item.licence}"
    if item.sha256:
        package["checksums"] = [{"algorithm": "SHA256", "checksumValue": item.sha256}]
    return package


def _relation(left: str, kind: str, right: str) -> dict[str, str]:
    return {"spdxElementId": left, "relationshipType": kind, "relatedSpdxElement": right}
