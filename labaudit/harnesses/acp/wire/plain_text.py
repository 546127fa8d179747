"""What an agent prints to a terminal, to its words: escape codes gone, overprinted lines resolved, prompts found."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # DCS and kin
    r"|\x1b[ -/]*[0-~]"  # two-character escapes
)
_CONTROLS = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]")
_BACKSPACED = re.compile(r"[^\n\x08]\x08")
_PROMPT = re.compile(r"(?:^|\n)[ \t]*(?:\[[^\]\n]{1,60}\][ \t]*)?(?:[A-Za-z0-9_-]{1,30})?(?:!?>)[ \t]*\Z")
_TRUST = re.compile(r"\[y/n(?:/t)?\][ \t]*:?[ \t]*\Z", re.IGNORECASE)


def strip_ansi(text: str) -> str:
    """`text` without escape sequences and control characters; tabs and newlines stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def plain(text: str) -> str:
    """What a reader would have seen: also backspaces and carriage returns have had their effect."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n")
    while "\x08" in text:
        shorter = _BACKSPACED.sub("", text)
        text = shorter if shorter != text else text.replace("\x08", "")
    lines = (line.rsplit("\r", 1)[-1] for line in text.split("\n"))
    return _CONTROLS.sub("", "\n".join(lines))


def ends_in_prompt(text: str) -> bool:
    """True when the last line is an input prompt such as `> ` or `kiro> `."""
    return _PROMPT.search(text) is not None


def ends_in_trust_question(text: str) -> bool:
    """True when the agent asks for leave to use a tool."""
    return _TRUST.search(text) is not None


def without_prompt(text: str) -> str:
    """The answer without the prompt that follows it."""
    return _PROMPT.sub("", text).strip()
