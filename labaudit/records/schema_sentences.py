"""An error of the `jsonschema` library to findings that a reader can act on.

Of alternatives only the one that was meant is explained: a hook event that names itself `control_ack` is told what is
wrong with it as a control_ack, not that it fits none of seven definitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from labaudit.records.finding import Finding, json_path

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


def sentences(error: ValidationError, schema: dict[str, Any]) -> Iterator[Finding]:
    """The errors that matter below one error of a document against `schema`."""
    if error.validator == "unevaluatedProperties":
        yield from _unknown_keys(error, schema)
        return
    if error.validator not in ("oneOf", "anyOf") or not error.context:
        yield Finding(json_path(error.absolute_path), _sentence(error), str(error.validator))
        return
    branches: dict[int, list[ValidationError]] = {}
    for part in error.context:
        branches.setdefault(int(part.schema_path[0]), []).append(part)
    kinds = _constants_that_differ(branches)
    meant = [parts for parts in branches.values() if not any(_is_another_kind(part, kinds) for part in parts)]
    if len(meant) == 1:
        for part in meant[0]:
            yield from sentences(part, schema)
    else:
        yield Finding(json_path(error.absolute_path), _none_fits(error, branches, kinds), str(error.validator))


def _constants_that_differ(branches: dict[int, list[ValidationError]]) -> dict[str, set[str]]:
    """The keys by which the alternatives tell themselves apart, with the values that were not met."""
    constants: dict[str, set[str]] = {}
    for parts in branches.values():
        for part in parts:
            if part.validator == "const" and part.relative_path:
                constants.setdefault(str(part.relative_path[-1]), set()).add(str(part.validator_value))
    return {key: values for key, values in constants.items() if len(values) > 1}


def _is_another_kind(error: ValidationError, kinds: dict[str, set[str]]) -> bool:
    """An alternative that differs in its own constant, or in its type as a whole, is not the one that was meant."""
    if not error.relative_path:
        return error.validator in ("const", "type")
    return error.validator == "const" and str(error.relative_path[-1]) in kinds


def _none_fits(error: ValidationError, branches: dict[int, list[ValidationError]], kinds: dict[str, set[str]]) -> str:
    if isinstance(error.instance, dict):
        for key, known in kinds.items():
            if key in error.instance:
                return f"{key} {_short(error.instance[key])} is unknown; known: {', '.join(sorted(known))}"
    messages = [
        {part.message for part in parts if part.validator != "unevaluatedProperties"} for parts in branches.values()
    ]
    shared = set.intersection(*messages)
    return "; ".join(sorted(shared)) or "fits none of the allowed forms"


def _unknown_keys(error: ValidationError, schema: dict[str, Any]) -> Iterator[Finding]:
    """The keys that no part of the definition knows.

    The library counts every key of a part that failed for another reason as unevaluated; those have findings of their
    own and are left out here.
    """
    known = _known_keys(error.schema, schema)
    keys = set(error.instance) if isinstance(error.instance, dict) else set()
    for key in sorted(keys - known):
        place = json_path(error.absolute_path)
        yield Finding(place, f"{key!r} is no key of this kind of event", "unevaluatedProperties")


def _known_keys(part: Any, schema: dict[str, Any]) -> set[str]:
    if not isinstance(part, dict):
        return set()
    known = set(part.get("properties", ()))
    for sub in part.get("allOf", ()):
        known |= _known_keys(sub, schema)
    reference = part.get("$ref", "")
    if reference.startswith("#/$defs/"):
        known |= _known_keys(schema["$defs"][reference.removeprefix("#/$defs/")], schema)
    return known


def _sentence(error: ValidationError) -> str:
    if error.validator == "format":
        return f"{_short(error.instance)} is no RFC 3339 time with an offset"
    if error.validator in ("pattern", "maxLength", "enum", "const", "type"):
        return error.message.replace(repr(error.instance), _short(error.instance), 1)
    return error.message if len(error.message) < 400 else error.message[:400] + "..."


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."
