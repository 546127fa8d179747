"""`runtime.harness.permissions` written wrongly: one sentence with the line, the value, and what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from labaudit.errors import BadInput
from labaudit.planning.loader import load_experiment

TEXT = """\
version: "0.3"
experiment: {id: talk}
dataset: {path: tasks.jsonl}
baseline: {id: base, bindings: {}}
runtime:
  harness:
    mode: acp
    command: [agent]
    permissions: %s
"""


def experiment(folder: Path, permissions: str) -> Path:
    path = folder / "experiment.yaml"
    path.write_text(TEXT % permissions, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("permissions", "sentence"),
    [
        ("deny-all", 'runtime.harness.permissions: "deny-all" is no permission policy; did you mean "deny_all"?'),
        ("allow_all", "there is no standing grant; allowed: deny_all, or {allow_once: [...]}"),
        ("true", "runtime.harness.permissions: true is no permission policy; allowed: deny_all"),
        ("read", "did you mean {allow_once: [read]}?"),
        ("[read, search]", "did you mean {allow_once: [read, search]}?"),
        ("[raed]", '["raed"] is no permission policy; allowed: deny_all'),
        ("{allow_once: reed}", '"reed" is no list; did you mean [read]?'),
        ("{allow_once: null}", "null is no list; list kinds of tool call: read, edit"),
        ("{allow_once: []}", "[] names no kind of tool call; write permissions: deny_all"),
        ("{allow_onec: [read]}", 'unknown key "allow_onec" in runtime.harness.permissions; did you mean "allow_once"?'),
        ("{allow_once: [read], x: 1}", 'unknown key "x" in runtime.harness.permissions; known: allow_once'),
        ("{allow_once: [execut]}", 'allow_once[0]: "execut" is no kind of tool call; did you mean "execute"?'),
        ("{allow_once: [5]}", "5 is no kind of tool call; known: read, edit, delete"),
    ],
)
def test_a_wrong_policy_is_told_once_at_its_line_with_what_is_allowed(
    tmp_path: Path, permissions: str, sentence: str
) -> None:
    with pytest.raises(BadInput) as raised:
        load_experiment(experiment(tmp_path, permissions))
    told = str(raised.value)
    assert sentence in told
    assert "experiment.yaml:9: " in told
    assert "AllowOnce" not in told, "the name of our class is no word of the file"
    assert "tuple" not in told


def test_a_wrong_kind_is_told_at_its_own_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"experiment\.yaml:12: .*allow_once\[1\].*\"serch\".*did you mean \"search\"\?"):
        load_experiment(experiment(tmp_path, "\n      allow_once:\n      - read\n      - serch"))


@pytest.mark.parametrize("permissions", ["deny_all", "{allow_once: [read, other]}", "null"])
def test_right_policies_are_taken(tmp_path: Path, permissions: str) -> None:
    load_experiment(experiment(tmp_path, permissions))
