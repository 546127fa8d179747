"""What a check found: the rule, the place in the document, and a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Finding(NamedTuple):
    """One broken rule. `path` is `$` for the whole document, `$.files[3].path` for a part of it."""

    path: str
    message: str
    rule: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message} [{self.rule}]"

    def as_json(self) -> dict[str, str]:
        """The finding as a JSON object."""
        return self._asdict()


def json_path(parts: Iterable[str | int]) -> str:
    """The parts of a place in a document as one readable path: `$.files[3].path`."""
    text = "$"
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier():
            text += f".{part}"
        else:
            text += f"[{part!r}]"
    return text
