"""The four steps of a run as an in-toto layout and signed links, all derived from digests.

The reference in-toto-verify passes on them. It checks that each link's products are the next one's materials; it does
not look at the disk. `labaudit verify` does both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from labaudit.attest.dsse import Envelope, seal
from labaudit.attest.keys import PrivateKey, PublicKey
from labaudit.core.canonical import canonical_bytes

LAYOUT_NAME = "root.layout"
EXPIRES = "9999-12-31T23:59:59Z"


@dataclass(frozen=True)
class Step:
    """One step: what it takes in and what it makes, as paths in the run folder."""

    name: str
    materials: tuple[str, ...]
    materials_from: str
    products: tuple[str, ...]


STEPS = (
    Step("resolve", (), "", ("resolved_experiment.json",)),
    Step("run", ("resolved_experiment.json",), "resolve", ("inclusion.json",)),
    Step("analyze", ("inclusion.json",), "run", ("analysis/summary.json", "grades.json")),
    Step("seal", ("analysis/summary.json", "grades.json"), "analyze", ("manifest.json",)),
)


def link_name(step: str, key: PublicKey) -> str:
    """`<step>.<first 8 of the key's in-toto id>.link`, where in-toto-verify looks for it."""
    return f"{step}.{key.intoto_id[:8]}.link"


def layout_payload(run_id: str, key: PublicKey) -> bytes:
    """The layout of one run under one key."""
    return canonical_bytes(
        {
            "_type": "layout",
            "expires": EXPIRES,
            "inspect": [],
            "keys": {key.intoto_id: key.intoto_json()},
            "readme": f"Steps of labaudit run {run_id}. Links are checked against each other, not against a disk.",
            "steps": [_step_json(step, key) for step in STEPS],
        }
    )


def link_payload(step: Step, digests: Mapping[str, str]) -> bytes:
    """The link of one step; `digests` gives the SHA-256 of each path."""
    return canonical_bytes(
        {
            "_type": "link",
            "byproducts": {},
            "command": [],
            "environment": {},
            "materials": {path: {"sha256": digests[path]} for path in step.materials},
            "name": step.name,
            "products": {path: {"sha256": digests[path]} for path in step.products},
        }
    )


def sign_payload(payload: bytes, key: PrivateKey) -> bytes:
    """A layout or link as the bytes of its file: a DSSE envelope that in-toto-verify reads."""
    return envelope_bytes(seal(payload, key, key.public.intoto_id))


def envelope_bytes(envelope: Envelope) -> bytes:
    """The envelope as its file holds it."""
    return canonical_bytes(envelope.as_json())


def _step_json(step: Step, key: PublicKey) -> dict[str, object]:
    materials: list[list[str]] = [
        ["MATCH", path, "WITH", "PRODUCTS", "FROM", step.materials_from] for path in step.materials
    ]
    products: list[list[str]] = [["REQUIRE", path] for path in step.products]
    products += [["CREATE", path] for path in step.products]
    return {
        "_type": "step",
        "expected_command": [],
        "expected_materials": [["REQUIRE", path] for path in step.materials] + materials + [["DISALLOW", "*"]],
        "expected_products": [*products, ["DISALLOW", "*"]],
        "name": step.name,
        "pubkeys": [key.intoto_id],
        "threshold": 1,
    }
