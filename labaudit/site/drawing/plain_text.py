"""Bytes and text that an agent wrote to text that a reader may safely look at.

HTML is escaped by the templates. What escaping leaves alone is made visible here: terminal control codes, characters
that turn the reading direction, and characters of no width, each as its code in brackets.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from markupsafe import Markup, escape

# C0 without tab and newline, DEL, C1, soft hyphen, Arabic letter mark, Mongolian separator, zero-width and direction
# marks, line and paragraph separators, embeddings and isolates, word joiner and invisible operators, BOM, tags, private
# noncharacters and lone surrogates.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
EXCERPT = 2000
_BINARY_SHARE = 0.1


class Excerpt(NamedTuple):
    """The beginning (and end) of a file as text; `kind` is text, binary or empty."""

    kind: str
    text: str
    size: int
    shown: int

    @property
    def cut(self) -> bool:
        """True when there is more than is shown."""
        return self.shown < self.size


def visible(text: str) -> str:
    """`text` with every unseen character as ⟨U+XXXX⟩; tabs and newlines stay."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found.group()):04X}⟩", text)


def shown(value: object) -> object:
    """What a template prints for an expression: text made visible, markup and numbers as they are."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return "" if value is None else value


def between_tags(text: str) -> Markup:
    """Escaped text for between two tags, never for an attribute: quotes stay, which is a tenth of a page of JSON."""
    return Markup(str(escape(visible(text))).replace("&#34;", '"').replace("&#39;", "'"))  # noqa: S704 - it has just been escaped


def between_quotes(text: str) -> Markup:
    """Escaped text for an attribute in double quotes; single ones stay."""
    return Markup(str(escape(visible(text))).replace("&#39;", "'"))  # noqa: S704 - it has just been escaped


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters of a text, the cut marked."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def excerpt(data: bytes, limit: int = EXCERPT, *, size: int | None = None) -> Excerpt:
    """Head and tail of `data` as text; bytes that are no UTF-8 are shown escaped, binary is only counted.

    `size` is the true length when `data` is already a part.
    """
    total = len(data) if size is None else size
    if not data:
        return Excerpt("empty", "", total, 0)
    head = data[:limit]
    if head.count(b"\0") > len(head) * _BINARY_SHARE:
        return Excerpt("binary", "", total, 0)
    text = head.decode("utf-8", "backslashreplace")
    # A cut in the middle of a character is ours, not the agent's.
    if len(data) > limit:
        text = head.decode("utf-8", "ignore") if _ends_in_a_character(head) else text
    return Excerpt("text", text, total, min(len(head), total))


def _ends_in_a_character(head: bytes) -> bool:
    for back in range(1, 4):
        try:
            head[:-back].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return True
    return False
