"""How a command ends when something goes wrong that no command expects: a sentence and a documented exit code.

A traceback would also end with exit code 1, which here means that evidence contradicts a claim.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from typing import TextIO

from labaudit.errors import EnvironmentLacks, LabauditError

TRACEBACK_VARIABLE = "LABAUDIT_TRACEBACK"

_NAMES_THE_WRONG_THING = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)


def in_our_words(error: Exception) -> LabauditError:
    """An error that nobody caught, as one that names the thing, the place and the next step."""
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error)
    if isinstance(error, OSError):
        return _of_the_system(error)
    what = f"an error inside labaudit: {type(error).__name__}: {error}".rstrip(": ")
    # Neither a contradiction (1) nor the user's mistake (2): nothing may be concluded from it.
    return EnvironmentLacks(what, hint=f"please report it, with what {TRACEBACK_VARIABLE}=1 shows besides")


def _of_the_system(error: OSError) -> LabauditError:
    from pathlib import Path

    from labaudit.store import atomic

    where = error.filename2 or error.filename
    path = Path(os.fsdecode(where)) if isinstance(where, str | bytes) else None
    if path is not None:
        explained = atomic.explain(error, path)
        if isinstance(error, _NAMES_THE_WRONG_THING) or isinstance(explained, EnvironmentLacks):
            return explained
    else:
        explained = atomic.explain(error, Path())
    return EnvironmentLacks(explained.what, where=str(path or ""), hint=explained.hint)


def settle_output() -> None:
    """Makes stdout and stderr patient: a reader that leaves changes neither what a command does nor its exit code."""
    if sys.stdout is not None:
        sys.stdout = _patient(sys.stdout, line_buffering=sys.stdout.isatty())
    if sys.stderr is not None:
        sys.stderr = _patient(sys.stderr, line_buffering=True)


def flush_output(code: int) -> int:
    """Hands over the last words; `code`, or 4 when there is no room for them."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _to_nowhere(sys.stdout.fileno())
        if code == 0 and sys.stderr is not None:
            sys.stderr.write(f"labaudit: the output is not complete: {error.strerror}\n")
        return EnvironmentLacks.exit_code
    return code


def _patient(stream: TextIO, *, line_buffering: bool) -> TextIO:
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:
        return stream  # whoever called in keeps the words in memory; there is no reader that could leave
    # A file name that is no UTF-8, or a terminal that knows no ellipsis, must not stop a report half-way.
    errors = stream.errors if stream.errors == "surrogateescape" else "backslashreplace"
    raw = _PatientFile(descriptor, "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors=errors, line_buffering=line_buffering
    )


class _PatientFile(io.FileIO):
    """A file that goes on into nothing once nobody reads it any more."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            _to_nowhere(self.fileno())
            return len(memoryview(data))  # type: ignore[arg-type]


def _to_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
