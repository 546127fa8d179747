"""Format names to the readers that know them; a reader is loaded when its format is asked for."""

from __future__ import annotations

from importlib import import_module

from labaudit.errors import BadInput
from labaudit.importers.protocol import Reader

READERS = {
    "terminal-bench": ("terminal_bench", "read_terminal_bench"),
    "inspect": ("inspect_log", "read_inspect"),
    "harbor": ("harbor", "read_harbor"),
    "swebench": ("swebench", "read_swebench"),
    "table": ("table", "read_table"),
}
FORMATS = tuple(READERS)


def reader_of(name: str) -> Reader:
    """The reader of a format; BadInput when nobody knows it."""
    if name not in READERS:
        raise BadInput(f"there is no format {name!r}", hint="known: " + ", ".join(FORMATS))
    module, function = READERS[name]
    reader: Reader = getattr(import_module(f"labaudit.importers.{module}"), function)
    return reader
