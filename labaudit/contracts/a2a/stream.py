"""A file with one packet per line to one result per line: an event, or the error that kept it from being one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from labaudit.contracts.a2a.convert import Event, convert_packet
from labaudit.contracts.a2a.errors import AdapterError
from labaudit.contracts.a2a.packet import Options, RawWriter, name_raw_bytes


class Converted(NamedTuple):
    """What became of one line: exactly one of `event` and `error` is there."""

    line: int
    data: bytes
    event: Event | None
    error: AdapterError | None


def convert_lines(
    lines: Iterable[bytes], options: Options, keep_raw: RawWriter = name_raw_bytes
) -> Iterator[Converted]:
    """Each packet by itself, in order; a refused one does not stop the others. Empty lines are no packets.

    A packet's raw bytes are its line without the line feed.
    """
    for number, line in enumerate(lines, start=1):
        data = line[:-1] if line.endswith(b"\n") else line
        if not data.strip():
            continue
        try:
            yield Converted(number, data, convert_packet(data, options, keep_raw), None)
        except AdapterError as error:
            yield Converted(number, data, None, error)
