"""What an author may write under `runtime.harness.permissions`, and one sentence for everything else.

    permissions: deny_all
    permissions: {allow_once: [read, search]}
"""

from __future__ import annotations

import difflib
import json
from typing import Literal, get_args

from pydantic_core import PydanticCustomError

AcpToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
KINDS: tuple[str, ...] = get_args(AcpToolKind)
DENY_ALL = "deny_all"
WHOLE_SENTENCE = "whole_sentence"
"""The type of errors whose message names the value and the way out itself."""
_KNOWN = ", ".join(KINDS)
ALLOWED = "allowed: deny_all, or {allow_once: [...]} with kinds of tool call"


def policy_shape(value: object) -> str:
    """Which form is meant: a mapping names kinds, anything else can only be the one word."""
    return "[kinds]" if isinstance(value, dict) or hasattr(value, "allow_once") else "[word]"


def policy_by_name(value: object) -> object:
    """The one word; the error says what else may stand there and what was probably meant."""
    if value == DENY_ALL:
        return value
    raise _wrong(value, "is no permission policy", _meant(value) or ALLOWED)


def kinds_in_a_list(value: object) -> object:
    """One kind or more; a bare word and an empty list are told apart from a list with a wrong kind."""
    if isinstance(value, list | tuple):
        if value:
            return value
        raise _wrong(value, "names no kind of tool call", f"write permissions: {DENY_ALL}, or name some: {_KNOWN}")
    near = _near(value, KINDS) if isinstance(value, str) else None
    raise _wrong(value, "is no list", f"did you mean [{near}]?" if near else f"list kinds of tool call: {_KNOWN}")


def known_kind(value: object) -> object:
    """A kind of tool call that ACP names."""
    if isinstance(value, str) and value in KINDS:
        return value
    near = _near(value, KINDS) if isinstance(value, str) else None
    hint = f'did you mean "{near}"? Known are {_KNOWN}' if near else f"known: {_KNOWN}"
    raise _wrong(value, "is no kind of tool call", hint)


def _wrong(value: object, what: str, hint: str) -> PydanticCustomError:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return PydanticCustomError(WHOLE_SENTENCE, "{sentence}", {"sentence": f"{shown} {what}; {hint}"})


def _meant(value: object) -> str | None:
    if isinstance(value, str):
        if value in KINDS:
            return f"did you mean {{allow_once: [{value}]}}?"
        if _near(value, (DENY_ALL,)) is not None:
            return f'did you mean "{DENY_ALL}"?'
        if "allow" in value.lower():
            return f"there is no standing grant; {ALLOWED}"
    if isinstance(value, list) and value and all(kind in KINDS for kind in value if isinstance(kind, str)):
        return f"did you mean {{allow_once: [{', '.join(map(str, value))}]}}?"
    return None


def _near(value: str, known: tuple[str, ...]) -> str | None:
    found = difflib.get_close_matches(value.lower().replace("-", "_"), known, n=1, cutoff=0.75)
    return found[0] if found else None
