"""Bills of materials to `sbom.html`: packages by document, what is missing and why."""

from __future__ import annotations

from typing import Any

from labaudit.core.strict_json import parse_object
from labaudit.errors import LabauditError
from labaudit.site.pages.run_pages import RunSite
from labaudit.store import atomic

Json = dict[str, Any]
LISTED = 2000
FORMATS = {"cyclonedx": "CycloneDX", "spdx": "SPDX"}
_LARGEST = 64 << 20


def write_sbom(site: RunSite) -> None:
    """`sbom.html` of one run."""
    stated = (site.run.attestation or {}).get("sbom") or {}
    documents = [_document(site, item) for item in stated.get("documents") or [] if isinstance(item, dict)]
    site.page(
        "sbom.html",
        "sbom.html",
        documents=documents,
        missing=stated.get("missing") or [],
        mode=stated.get("mode") or (site.run.resolved.get("provenance") or {}).get("sbom"),
        image=((site.run.resolved.get("runtime") or {}).get("image") or {}),
        known=site.run.attestation is not None,
    )


def _document(site: RunSite, item: Json) -> Json:
    path = str(item.get("path"))
    listed = site.run.listed.get(path)
    packages: list[Json] = []
    problem = ""
    try:
        if listed is None:
            problem = "is not listed in the manifest"
        else:
            value = parse_object(atomic.read_bytes(site.run.folder.path / path, max_bytes=_LARGEST), where=path)
            packages = _packages(value)
    except LabauditError as error:
        problem = error.what
    # The same packages stand in both formats; one table is enough for a reader.
    return {
        **item,
        "packages": packages[:LISTED],
        "count": len(packages),
        "problem": problem,
        "format": FORMATS.get(str(item.get("format")), item.get("format")),
    }


def _packages(value: Json) -> list[Json]:
    if "components" in value or value.get("bomFormat") == "CycloneDX":
        found = [
            {"name": one.get("name"), "version": one.get("version"), "purl": one.get("purl")}
            for one in value.get("components") or []
            if isinstance(one, dict)
        ]
    else:
        # SPDX counts what it describes among the packages; a reader asks what is in it.
        roots = value.get("documentDescribes")
        described = [str(one) for one in roots] if isinstance(roots, list) else []
        found = [
            {"name": one.get("name"), "version": one.get("versionInfo"), "purl": _spdx_purl(one)}
            for one in value.get("packages") or []
            if isinstance(one, dict) and one.get("SPDXID") not in described
        ]
    return sorted(found, key=lambda one: (str(one["name"]), str(one["version"])))


def _spdx_purl(package: Json) -> str | None:
    for reference in package.get("externalRefs") or []:
        if isinstance(reference, dict) and reference.get("referenceType") == "purl":
            return str(reference.get("referenceLocator"))
    return None
