"""Components to a CycloneDX 1.6 document, written by cyclonedx-python-lib and checked against the official schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from labaudit import __version__
from labaudit.attest.sbom.component import Component, SbomSubject
from labaudit.core.canonical import canonical_bytes
from labaudit.errors import Contradiction


def cyclonedx_document(subject: SbomSubject, components: Sequence[Component], *, created: datetime) -> bytes:
    """The document's bytes; the same inputs give the same bytes."""
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component as CdxComponent
    from cyclonedx.model.component import ComponentType
    from cyclonedx.output.json import JsonV1Dot6

    root = CdxComponent(
        name=subject.name,
        version=subject.digest,
        bom_ref=f"labaudit:{subject.kind}",
        type=ComponentType.CONTAINER if subject.kind == "image" else ComponentType.APPLICATION,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=subject.hex)],
    )
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"labaudit:{subject.kind}:{subject.digest}"))
    bom.metadata.component = root
    bom.metadata.timestamp = created
    bom.metadata.tools.components.add(
        CdxComponent(name="labaudit", version=__version__, type=ComponentType.APPLICATION, bom_ref="labaudit")
    )
    parts = [_component(item) for item in components]
    bom.components.update(parts)
    bom.register_dependency(root, parts)
    document: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    data = canonical_bytes(document)
    validate_cyclonedx(data)
    return data


def _component(item: Component) -> Any:
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.component import Component as CdxComponent
    from cyclonedx.model.component import ComponentType
    from cyclonedx.model.license import DisjunctiveLicense
    from packageurl import PackageURL

    return CdxComponent(
        name=item.name,
        version=item.version or None,
        group=item.namespace or None,
        bom_ref=item.purl,
        purl=PackageURL.from_string(item.purl),
        type=ComponentType.LIBRARY,
        licenses=[DisjunctiveLicense(name=item.licence)] if item.licence else None,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=item.sha256)] if item.sha256 else None,
    )


def validate_cyclonedx(data: bytes) -> None:
    """Contradiction when the document does not keep to the CycloneDX 1.6 schema."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(data.decode("utf-8"))
    if problem is not None:
        raise Contradiction(f"the CycloneDX document breaks its own schema: {str(problem)[:300]}")
