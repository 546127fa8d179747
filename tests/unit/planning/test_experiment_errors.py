"""experiment.yaml written wrongly: each error names what, where and the next step; nothing is written."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import NamedTuple

import pytest

from labaudit.cli import invoke

GOOD = """\
version: "0.3"
experiment: {id: greet}
dataset: {path: tasks.jsonl}
baseline: {id: base, bindings: {greeting: Hello}}
variant_plan:
  - {id: casual, bindings: {greeting: Hi}}
runtime:
  engine: process
  harness: {command: [python3, /harness/agent.py], source: harness}
evaluators:
  - {id: exact, type: exact_match}
metrics:
  - {name: success, type: binary, source: "evaluator:exact"}
analysis_plan: {primary: [success]}
"""


def _folder(tmp_path: Path, text: str = GOOD, tasks: str = '{"id": "a", "expected": "x"}\n') -> Path:
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "agent.py").write_text("")
    (tmp_path / "tasks.jsonl").write_text(tasks)
    (tmp_path / "experiment.yaml").write_text(text)
    return tmp_path


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def _labaudit(folder: Path, *arguments: str) -> Ended:
    """The command line in this process, as if called in `folder`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = invoke(list(arguments))
    return Ended(code, out.getvalue(), err.getvalue())


WRONG = {
    "a tab": (GOOD.replace("  engine: process", "\tengine: process"), ["experiment.yaml:8"]),
    "an unknown key": (GOOD.replace("runtime:", "runtimes:"), ["experiment.yaml:7", 'did you mean "runtime"']),
    "an unknown inner key": (GOOD.replace("source: harness", "sorce: harness"), [":9", 'did you mean "source"']),
    "a key twice": (GOOD + "version: '0.3'\n", ["experiment.yaml:15", "stands twice"]),
    "a variant id twice": (GOOD.replace("id: casual", "id: base"), ["experiment.yaml:6", "'base' stands twice"]),
    "a misspelt binding": (
        GOOD.replace("greeting: Hi}", "greting: Hi}"),
        [":6", 'sets unknown binding "greting"', "known: greeting"],
    ),
    "a variant that changes nothing": (GOOD.replace("greeting: Hi}", "greeting: Hello}"), [":6", "changes nothing"]),
    "an evaluator that is not there": (GOOD.replace("evaluator:exact", "evaluator:exakt"), [":13", "no evaluator"]),
    "a primary metric that is not declared": (GOOD.replace("[success]}", "[accuracy]}"), [":14", "not declared"]),
    "a dataset that is not there": (GOOD.replace("tasks.jsonl", "task.jsonl"), ["experiment.yaml:3", "no dataset"]),
    "a source that is not there": (GOOD.replace("source: harness", "source: harnes"), [":9", "no directory"]),
    "no version": (GOOD.replace('version: "0.3"\n', ""), ['"version" is missing']),
    "another version": (GOOD.replace('"0.3"', '"0.2"'), ["experiment.yaml:1"]),
    "hosts without an allowlist": (
        GOOD.replace("  engine: process", "  engine: process\n  network: {allowed_hosts: [a.example]}"),
        ["experiment.yaml:9", "mean nothing with network mode none"],
    ),
    "an address in the allowlist": (
        GOOD.replace(
            "  engine: process",
            "  engine: process\n  network: {mode: allowlist_enforced, allowed_hosts: ['https://a.example']}",
        ),
        ["experiment.yaml:9", "runtime.network.allowed_hosts[0]", "is a URL"],
    ),
    "a lockfile that is not there": (
        GOOD.replace("source: harness}", "source: harness, lockfile: harness/none.txt}"), [":9", "is no file"]
    ),
    "a control file outside": (
        GOOD.replace("source: harness}", "source: harness, control_plane: {path: /state/../../etc/x.json}}"),
        [":9", "directly below /state/"],
    ),
    "a control file in a folder that the harness owns": (
        GOOD.replace("source: harness}", "source: harness, control_plane: {path: /state/mine/x.json}}"),
        [":9", "directly below /state/"],
    ),
    "a redaction pattern that is none": (
        GOOD + "redaction: {rules: [{pattern: 'sk-['}]}\n", ["experiment.yaml:15", "no regular expression"]
    ),
    "a redaction pattern that matches everywhere": (
        GOOD + "redaction: {rules: [{pattern: 'x*'}]}\n", ["experiment.yaml:15", "the empty text"]
    ),
    "an evaluator's pattern that is none": (
        GOOD.replace("type: exact_match}", "type: regex, pattern: '('}"), [":11", "no regular expression"]
    ),
    "an integer that JSON cannot carry": (
        GOOD + "design: {seed: 9007199254740993}\n", ["experiment.yaml:15", "beyond 2^53-1"]
    ),
    "a binding that JSON cannot carry": (
        GOOD.replace("greeting: Hi}", "greeting: 1e999}"), ["experiment.yaml:6", "too large"]
    ),
    "an alias inside what it names": ("version: &a [*a]\n", ["experiment.yaml:1", "nested deeper"]),
    "aliases that unfold without end": (
        "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)),
        ["unfolds to more than"],
    ),
    "brackets without end": ("version: " + "[" * 100_000, ["nested deeper"]),
    "a list that is a word": (GOOD.replace("[python3, /harness/agent.py]", "python3"), [":9", "should be a list"]),
    "a list at the top": ("- 1\n- 2\n", ["experiment.yaml", "settings by name"]),
    "nothing at all": ("", ["experiment.yaml"]),
    "a wrong type": (GOOD.replace("dataset: {path: tasks.jsonl}", "dataset: [1]"), ["experiment.yaml:3"]),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_experiment_is_said_with_file_and_line(name: str, tmp_path: Path) -> None:
    text, expected = WRONG[name]
    assert text != GOOD
    done = _labaudit(_folder(tmp_path, text), "validate", "experiment.yaml")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    for part in expected:
        assert part in done.stderr
    assert not (tmp_path / ".lab").exists()


TASKS = {
    "an empty dataset": ("", "has no task"),
    "a task without id": ('{"id": "a"}\n{"name": "x"}\n', "tasks.jsonl:2"),
    "two tasks with one id": ('{"id": "a"}\n\n{"id": "a"}\n', "tasks.jsonl:3"),
    "a line that is no JSON": ('{"id": "a"}\n{"id": \n', "tasks.jsonl:2"),
    "a task that is no object": ("[1]\n", "tasks.jsonl:1"),
}


@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_wrong_dataset_is_said_with_file_and_line(name: str, tmp_path: Path) -> None:
    tasks, expected = TASKS[name]
    done = _labaudit(_folder(tmp_path, tasks=tasks), "run", "experiment.yaml")
    assert done.returncode == 2, done.stderr
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".lab").exists()


@pytest.mark.bubblewrap
def test_an_image_that_is_not_there_is_said_with_file_and_line(tmp_path: Path) -> None:
    text = GOOD.replace("engine: process", "engine: bubblewrap\n  image: nosuchimage")
    done = _labaudit(_folder(tmp_path, text), "validate", "experiment.yaml")
    assert done.returncode == 4
    assert "experiment.yaml:9: runtime.image: there is no image" in done.stderr


@pytest.mark.bubblewrap
def test_the_bundled_image_is_a_default_with_its_reason(tmp_path: Path) -> None:
    done = _labaudit(_folder(tmp_path), "validate", "experiment.yaml", "--engine", "bubblewrap", "--json")
    assert done.returncode == 0, done.stderr
    resolved = json.loads(done.stdout)["resolved_experiment"]
    (image,) = [item for item in resolved["defaults"] if item["path"] == "runtime.image"]
    assert image["value"] == resolved["runtime"]["image"]["id"]
    assert "bundled" in image["reason"]


def test_a_run_records_no_absolute_path_though_the_experiment_names_some(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "judge").mkdir()
    (folder / "cache").mkdir()
    (folder / "harness" / "lock.txt").write_text("")
    (folder / "task.schema.json").write_text("{}")
    text = GOOD.replace("tasks.jsonl", f"{folder}/tasks.jsonl, task_schema: {folder}/task.schema.json")
    text = text.replace("source: harness", f"source: {folder}/harness, lockfile: {folder}/harness/lock.txt")
    text = text.replace("  engine: process", f"  engine: process\n  cache: {folder}/cache")
    text = text.replace("type: exact_match", f"type: command, command: [x], source: {folder}/judge")
    (folder / "experiment.yaml").write_text(text)
    done = _labaudit(folder, "validate", "experiment.yaml", "--json")
    assert done.returncode == 0, done.stderr
    assert str(folder) not in done.stdout
    resolved = json.loads(done.stdout)["resolved_experiment"]
    assert resolved["dataset"]["path"] == "tasks.jsonl"
    assert resolved["runtime"]["harness"]["lockfile"] == "harness/lock.txt"


def test_a_table_that_a_spreadsheet_saved_is_read(tmp_path: Path) -> None:
    folder = _folder(tmp_path, GOOD.replace("tasks.jsonl", "tasks.csv"))
    (folder / "tasks.csv").write_bytes(b"\xef\xbb\xbfid,expected\na,x\n")
    done = _labaudit(folder, "validate", "experiment.yaml")
    assert done.returncode == 0, done.stderr


def test_a_secret_too_short_to_be_withheld_is_told_before_there_is_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "abc")
    folder = _folder(tmp_path, GOOD.replace("source: harness}", "source: harness, secrets: [MODEL_API_KEY]}"))
    done = _labaudit(folder, "run", "experiment.yaml")
    assert done.returncode == 2
    assert "fewer than 4 characters" in done.stderr
    assert not (tmp_path / ".lab").exists()


def test_validate_lists_every_default_with_its_reason(tmp_path: Path) -> None:
    done = _labaudit(_folder(tmp_path), "validate", "experiment.yaml")
    assert done.returncode == 0, done.stderr
    assert "design.seed = 0: fixed, so that the schedule can be computed again" in done.stdout
    assert "trials      2" in done.stdout


def test_init_writes_an_experiment_that_validates_and_never_writes_over_one(tmp_path: Path) -> None:
    assert _labaudit(tmp_path, "init", "mine").returncode == 0
    done = _labaudit(tmp_path, "validate", "mine/experiment.yaml", "--engine", "process", "--json")
    assert done.returncode == 0, done.stderr
    again = _labaudit(tmp_path, "init", "mine")
    assert again.returncode == 2
    assert "is there already" in again.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "absent.yaml"),
        ("resume", "latest"),
        ("status", "nothing"),
        ("grade", "latest"),
        ("control", "latest", "stop"),
    ],
)
def test_what_is_not_there_is_said(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = _labaudit(tmp_path, *arguments)
    assert done.returncode == 2, done.stderr
    assert "labaudit: " in done.stderr
    assert "Traceback" not in done.stderr
