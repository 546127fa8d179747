"""JSON from a target to a value, only while the value stays small: a few megabytes of `[],[],...` become gigabytes.

What a parsed document costs follows from how many values it holds, so separators are counted before it is parsed.
"""

from __future__ import annotations

from labaudit.attest.run_reader import Json
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput

# Ten values in each row of a table of 100,000 trials, and some room.
MAX_VALUES = 1_300_000


def parse_bounded(data: bytes, *, where: str = "", max_values: int = MAX_VALUES) -> Json:
    """The JSON object in `data`; BadInput when it holds too many values, or is none."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") > max_values:
        raise BadInput(f"holds more than {max_values} values", where=where)
    return parse_object(data, where=where)
