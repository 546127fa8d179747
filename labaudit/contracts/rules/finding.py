"""What a rule says about a record: which rule, how serious, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

Severity = Literal["error", "warning"]
Json = Mapping[str, Any]


class RuleFinding(NamedTuple):
    """One broken rule. `path` is `$` for the whole record, `$.trace[3].level` for a part of it."""

    rule: str
    severity: Severity
    path: str
    message: str
    hint: str = ""

    def as_json(self) -> dict[str, str]:
        """The finding as a JSON object."""
        return self._asdict()

    def below(self, place: str) -> RuleFinding:
        """The same finding seen from a record that holds this one at `place`."""
        return self._replace(path=place + self.path.removeprefix("$"))


Findings = Iterator[RuleFinding]


def error(rule: str, path: str, message: str, hint: str = "") -> RuleFinding:
    """A finding that makes the record break its contract."""
    return RuleFinding(rule, "error", path, message, hint)


def warning(rule: str, path: str, message: str, hint: str = "") -> RuleFinding:
    """A finding that a reader should know of; the record still keeps its contract."""
    return RuleFinding(rule, "warning", path, message, hint)


def at(path: str, key: str) -> str:
    """The path of `key` below `path`; keys from outside are shortened, so that a finding stays readable."""
    return f"{path}.{key}" if key.isidentifier() and len(key) <= 60 else f"{path}[{key[:60]!r}]"


def kind_of(value: object) -> str:
    """The JSON type of a value, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string" if value else "an empty string"
    return "an array" if isinstance(value, list) else "an object"


def is_number(value: object) -> bool:
    """True for JSON numbers; a boolean is none. JSON from `read_json` has no NaN and no infinity."""
    kind = type(value)
    return kind is int or (kind is float and value - value == 0.0)  # type: ignore[operator]


def required_text(record: Json, keys: tuple[str, ...], rule: str, path: str = "$") -> Findings:
    """A finding for each key that is missing or holds anything but a non-empty string."""
    for key in keys:
        value = record.get(key)
        if not (isinstance(value, str) and value):
            found = kind_of(value) if key in record else "nothing"
            yield error(rule, at(path, key), f"{key} must be a non-empty string, there is {found}")


def unknown_keys(record: Json, known: frozenset[str], rule: str, path: str = "$", hint: str = "") -> Findings:
    """A finding for each key outside `known`."""
    # keys() <= set is one C call; most records have no unknown key.
    if not record.keys() <= known:
        for key in sorted(record.keys() - known):
            yield error(rule, at(path, key), f"{key[:60]!r} is no field of this record", hint or _fields(known))


def one_of(record: Json, key: str, allowed: tuple[str, ...], rule: str, path: str = "$") -> Findings:
    """A finding when `key` holds anything but one of these words."""
    value = record.get(key)
    if not (isinstance(value, str) and value in allowed):
        found = repr(value[:40]) if isinstance(value, str) else kind_of(value) if key in record else "nothing"
        yield error(rule, at(path, key), f"{key} must be one of {', '.join(allowed)}; there is {found}")


def _fields(known: frozenset[str]) -> str:
    return "known: " + ", ".join(sorted(known))
