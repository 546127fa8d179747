"""The self-check list on bubblewrap: all ok as root, honest as an ordinary user, and not taken in by a bubblewrap that
ignores what it is asked for."""

from __future__ import annotations

import os
from typing import Any

import pytest

from labaudit.engines.bubblewrap import sandbox as bubblewrap_sandbox
from labaudit.engines.bubblewrap.engine import BubblewrapEngine
from labaudit.engines.checks.self_check import RULES, self_check

pytestmark = pytest.mark.bubblewrap


def test_every_rule_answers_and_nothing_is_missing() -> None:
    with BubblewrapEngine.detect() as engine:
        checks = self_check(engine)
    assert [check.name for check in checks] == ["runs a command", *RULES]
    assert [check for check in checks if check.status == "missing"] == []
    lowered = {check.name for check in checks if check.status == "degraded"}
    assert lowered <= (set() if os.geteuid() == 0 else {"limits", "quotas"})
    assert all(check.fix for check in checks if check.status != "ok")


@pytest.mark.parametrize(
    ("dropped", "line"),
    [
        pytest.param(("--seccomp", None), "system calls", id="filter"),
        pytest.param(("--remount-ro", "/"), "file system", id="read-only-root"),
        pytest.param(("--unshare-net",), "no network", id="network"),
    ],
)
def test_an_option_that_is_not_carried_out_is_found(
    dropped: tuple[str | None, ...], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B69: the request says one thing, bubblewrap does another; only what is seen counts."""
    build = bubblewrap_sandbox.bubblewrap_command

    def ignoring(*arguments: Any, **options: Any) -> list[str]:
        words = build(*arguments, **options)
        spans = (words[at : at + len(dropped)] for at in range(len(words)))
        fits = [all(want in (None, word) for want, word in zip(dropped, span, strict=False)) for span in spans]
        at = fits.index(True)
        return words[:at] + words[at + len(dropped) :]

    monkeypatch.setattr(bubblewrap_sandbox, "bubblewrap_command", ignoring)
    with BubblewrapEngine.detect() as engine:
        checks = {check.name: check for check in self_check(engine)}
    assert checks[line].status == "missing", checks[line]
