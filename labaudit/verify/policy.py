"""A policy file to what a pipeline demands of a run, beyond its being intact.

    version: 1
    name: release
    kinds: [run, result, grades, evidence, eval]    attestations that must be there
    sbom: required                                   off | required
    minimum_grades: {isolation: bounded}             by the scales of grades.json
    minimum_level: cli_events                        observed integration level
    recomputed: [grades, analysis]                   claims that must have been recomputed
    signers: {keys: [SHA256:...], identities: [{identity: ..., issuer: ...}]}
    refuse_caveats: [imported_evidence]
    max_lost_fraction: 0.05
    timestamp: required                              off | required

A policy narrows whom to accept; it never makes anyone trusted. Keys that it leaves out demand nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from labaudit import resources
from labaudit.attest.statements import PREDICATE_TYPES
from labaudit.core.digest import sha256_hex
from labaudit.errors import BadInput
from labaudit.store import atomic

MAX_POLICY = 256 * 1024
SCALES: dict[str, tuple[str, ...]] = {
    "isolation": ("not_observed", "leaky", "bounded", "sealed"),
    "replay": ("not_observed", "none", "best_effort", "checkpointed", "strict"),
    "interpretability": ("not_observed", "output", "turn", "step"),
    "comparability": ("not_observed", "not_comparable", "descriptive", "qualified", "paired"),
    "provenance": ("not_observed", "none", "hashed", "signed", "attested"),
}
LEVELS = {"not_observed": 0, "cli_basic": 1, "cli_events": 2, "otel": 2, "sdk_control": 3, "sdk_full": 4}
CLAIMS = ("grades", "analysis", "trials_table", "site")
# A caveat that no grade carries: verify reads it from the logs of attempts.
MEASURED_AGAIN = "result_measured_again"
CAVEATS = ("imported_evidence", "provider_side_tools", MEASURED_AGAIN)
_KEYS = {
    "version", "name", "description", "kinds", "sbom", "minimum_grades", "minimum_level", "recomputed", "signers",
    "refuse_caveats", "max_lost_fraction", "timestamp",
}  # fmt: skip


@dataclass(frozen=True)
class Policy:
    """What a pipeline demands."""

    name: str
    sha256: str
    kinds: tuple[str, ...]
    sbom_required: bool
    minimum_grades: tuple[tuple[str, str], ...]
    minimum_level: str | None
    recomputed: tuple[str, ...]
    signer_keys: tuple[str, ...]
    signer_identities: tuple[tuple[str, str], ...]
    refuse_caveats: tuple[str, ...]
    max_lost_fraction: float | None
    timestamp_required: bool

    @property
    def names_signers(self) -> bool:
        """True when the policy narrows who may sign."""
        return bool(self.signer_keys or self.signer_identities)

    @property
    def allowed_signers(self) -> set[str]:
        """The signers that the policy names, as a report names them."""
        return {*self.signer_keys, *(f"{identity} ({issuer})" for identity, issuer in self.signer_identities)}


def load_policy(name: str) -> Policy:
    """A bundled policy by its name, or a policy file by its path."""
    path = Path(name)
    if not path.is_file():
        if "/" in name or path.suffix in {".yaml", ".yml"}:
            raise BadInput("there is no such policy file", where=name, hint="bundled: default, release, publication")
        path = resources.policy_path(name)
    return parse_policy(atomic.read_bytes(path, max_bytes=MAX_POLICY), where=str(path))


def parse_policy(data: bytes, *, where: str) -> Policy:
    """The policy in YAML text; an unknown key or value is BadInput, because a typo must not weaken a gate."""
    try:
        value = yaml.load(data, _Loader)  # noqa: S506 - a subclass of SafeLoader
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        # YAML's own types fail in their own ways: a date in month 13, a number of a million digits, a list as a key.
        raise BadInput(f"is no YAML: {error}", where=where) from error
    if not isinstance(value, dict):
        raise BadInput("holds no mapping", where=where)
    unknown = sorted(str(key) for key in value if key not in _KEYS)
    if unknown:
        hint = f"known: {', '.join(sorted(_KEYS))}"
        raise BadInput(f"has unknown keys: {', '.join(unknown)}", where=where, hint=hint)
    if type(value.get("version")) is not int or value["version"] != 1:
        raise BadInput("version must be 1", where=where)
    keys, identities = _signers(value, where)
    return Policy(
        name=str(value.get("name", Path(where).stem)),
        sha256=sha256_hex(data),
        kinds=_chosen(value.get("kinds", []), "kinds", tuple(PREDICATE_TYPES), where),
        sbom_required=_switch(value.get("sbom", "off"), "sbom", where),
        minimum_grades=_grades(_mapping(value.get("minimum_grades", {}), "minimum_grades", where), where),
        minimum_level=_level(value.get("minimum_level"), where),
        recomputed=_chosen(value.get("recomputed", []), "recomputed", CLAIMS, where),
        signer_keys=keys,
        signer_identities=identities,
        refuse_caveats=_chosen(value.get("refuse_caveats", []), "refuse_caveats", CAVEATS, where),
        max_lost_fraction=_fraction(value.get("max_lost_fraction"), where),
        timestamp_required=_switch(value.get("timestamp", "off"), "timestamp", where),
    )


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key twice: the second would silently replace the demand of the first."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len({str(key) for key in keys}) != len(keys):
            raise yaml.constructor.ConstructorError(None, None, "a key stands there twice", node.start_mark)
        result: dict[Any, Any] = super().construct_mapping(node, deep)
        return result


def _mapping(value: Any, key: str, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{key} must be a mapping", where=where)
    return value


def _signers(value: dict[str, Any], where: str) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Who may sign; a list that names nobody would read as a gate and be none."""
    if "signers" not in value:
        return (), ()
    signers = _mapping(value["signers"], "signers", where)
    unknown = sorted(str(key) for key in signers if key not in ("keys", "identities"))
    if unknown:
        raise BadInput(f"signers has unknown {unknown[0]!r}", where=where, hint="known: keys, identities")
    keys = _texts(signers.get("keys", []), "signers.keys", where)
    identities = _identities(signers.get("identities", []), where)
    if not keys and not identities:
        raise BadInput("signers names nobody", where=where, hint="leave signers out to accept whom you trust")
    return keys, identities


def _texts(value: Any, key: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadInput(f"{key} must be a list of texts", where=where)
    return tuple(value)


def _chosen(value: Any, key: str, known: tuple[str, ...], where: str) -> tuple[str, ...]:
    chosen = _texts(value, key, where)
    unknown = [item for item in chosen if item not in known]
    if unknown:
        raise BadInput(f"{key} has unknown {unknown[0]!r}", where=where, hint=f"known: {', '.join(known)}")
    return chosen


def _switch(value: Any, key: str, where: str) -> bool:
    # YAML reads a bare `off` as false.
    if value not in ("off", "required", False):
        raise BadInput(f"{key} must be off or required", where=where)
    return bool(value == "required")


def _grades(value: dict[str, Any], where: str) -> tuple[tuple[str, str], ...]:
    for name, minimum in value.items():
        if name not in SCALES or minimum not in SCALES[name]:
            known = ", ".join(SCALES.get(name, tuple(SCALES)))
            raise BadInput(f"minimum_grades has unknown {name}: {minimum}", where=where, hint=f"known: {known}")
    return tuple(sorted(value.items()))


def _level(value: Any, where: str) -> str | None:
    if value is not None and (not isinstance(value, str) or value not in LEVELS):
        raise BadInput(f"minimum_level {value!r} is unknown", where=where, hint=f"known: {', '.join(LEVELS)}")
    return None if value is None else str(value)


def _fraction(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise BadInput("max_lost_fraction must be a number from 0 to 1", where=where)
    return float(value)


def _identities(value: Any, where: str) -> tuple[tuple[str, str], ...]:
    found = []
    for item in value if isinstance(value, list) else [None]:
        if not isinstance(item, dict) or set(item) != {"identity", "issuer"}:
            raise BadInput("signers.identities must be a list of {identity, issuer}", where=where)
        found.append((str(item["identity"]), str(item["issuer"])))
    return tuple(found)
