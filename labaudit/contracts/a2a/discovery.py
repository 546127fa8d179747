"""The `attributes` of a packet to its `discovery` object, which never influences `handoff`."""

from __future__ import annotations


def observe_discovery(attributes: object) -> dict[str, object]:
    """Cards count as visible only by a boolean true at their one path under `attributes.assay_g4`."""
    marks = _object_at(attributes, "assay_g4")
    card = _object_at(marks, "agent_card").get("visible") is True
    extended = _object_at(marks, "extended_card_access").get("visible") is True
    return {
        "agent_card_visible": card,
        "agent_card_source_kind": "attributes" if card else "unknown",
        "extended_card_access_visible": extended,
        "signature_material_visible": False,
    }


def _object_at(value: object, key: str) -> dict[str, object]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}
