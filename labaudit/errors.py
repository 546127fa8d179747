"""Every error a user can meet: what happened, where, what to do next, and the exit code it ends with."""

from __future__ import annotations


class LabauditError(Exception):
    """Base of all expected failures; the command line prints it without a traceback."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  {self.hint}" if self.hint else text

    def as_json(self) -> dict[str, str | int]:
        """The same error for a program that reads stderr."""
        return {
            "error": type(self).__name__,
            "what": self.what,
            "where": self.where,
            "hint": self.hint,
            "exit_code": self.exit_code,
        }


class Contradiction(LabauditError):
    """The evidence contradicts a claim, or a run is invalid by its own rules."""

    exit_code = 1


class BadInput(LabauditError):
    """Usage, or input that cannot be read as what it should be."""

    exit_code = 2


class PolicyUnmet(LabauditError):
    """All that was checked holds, but a policy asks for more (a trust anchor, a grade, a kind)."""

    exit_code = 3


class EnvironmentLacks(LabauditError):
    """The machine lacks something: an engine, a permission, disk space."""

    exit_code = 4


class Interrupted(LabauditError):
    """Stopped by the user; what was finished is kept and `labaudit resume` goes on."""

    exit_code = 130
