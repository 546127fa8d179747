"""Commands and examples in README and docs exist: every `labaudit ...` line is looked up, the sample harness is run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from labaudit.cli import COMMANDS, invoke, labaudit
from labaudit.errors import BadInput
from labaudit.planning.loader import load_experiment
from labaudit.records import schema_registry

TOP = Path(__file__).resolve().parents[2]
PAGES = [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md"))]
RUN_TUTORIAL = TOP / "docs" / "tutorials" / "run-an-experiment.md"


def command_lines() -> list[tuple[str, str]]:
    """(where, line) of every indented line that calls labaudit, without its trailing comment."""
    found = []
    for page in PAGES:
        if page.name == "cli.md":
            continue
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            if re.match(r" {4,}labaudit ", line):
                found.append((f"{page.relative_to(TOP)}:{number}", line.partition("#")[0].strip()))
    return found


def options_of(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize(("where", "line"), command_lines(), ids=lambda text: str(text)[:40])
def test_a_documented_command_line_is_one_that_the_program_knows(where: str, line: str) -> None:
    words = shlex.split(line)[1:]
    command: click.Command = labaudit
    if words[0] == "--help":
        return
    assert words[0] in COMMANDS, f"{where}: there is no command {words[0]}"
    context = click.Context(labaudit)
    known = {"--help"}
    for word in words:
        if not word.startswith("-") and isinstance(command, click.Group):
            child = command.get_command(context, word)
            if child is None and command is labaudit:
                pytest.skip(f"{word} is planned but not part of this installation")
            assert child is not None, f"{where}: {command.name} has no {word}"
            command = child
            known |= options_of(command)
        elif word.startswith("--"):
            assert word.partition("=")[0] in known, f"{where}: {command.name} has no option {word}"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_harness_of_the_tutorial_writes_a_valid_output(tmp_path: Path) -> None:
    (program,) = blocks(RUN_TUTORIAL, "python")
    ids = {"run_id": "r", "trial_id": "t", "variant_id": "base", "task_id": "a", "repl_idx": 0}
    trial = {
        "ids": ids,
        "task": {"name": "Ada"},
        "bindings": {"greeting": "Hello"},
        "runtime": {"paths": {"out": str(tmp_path)}},
    }
    (tmp_path / "trial_input.json").write_text(json.dumps(trial))
    environment = {**os.environ, "LABAUDIT_TRIAL_INPUT": str(tmp_path / "trial_input.json")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    output = json.loads((tmp_path / "trial_output.json").read_bytes())
    assert output["answer"] == "Hello Ada"
    assert list(schema_registry.validate("trial_output_v1", output)) == []
    assert list(schema_registry.validate("trial_output_v1", {**output, "bogus": 1})) != []


def test_the_experiment_of_the_tutorial_loads(tmp_path: Path) -> None:
    (text,) = blocks(RUN_TUTORIAL, "yaml")
    (tmp_path / "experiment.yaml").write_text(text)
    experiment, _ = load_experiment(tmp_path / "experiment.yaml")
    assert experiment.experiment.id == "greet"
    (tmp_path / "experiment.yaml").write_text(text.replace("primary:", "primry:"))
    with pytest.raises(BadInput, match="primry"):
        load_experiment(tmp_path / "experiment.yaml")


def test_the_tutorial_typed_as_it_stands_finds_the_difference_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its file and its agent over the tasks that `init` writes, then the comparison that it names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LABAUDIT_DIR", raising=False)
    assert invoke(["init", "."]) == 0
    (text,), (program,) = blocks(RUN_TUTORIAL, "yaml"), blocks(RUN_TUTORIAL, "python")
    Path("experiment.yaml").write_text(text)
    Path("harness/agent.py").write_text(program)
    assert invoke(["run", "experiment.yaml", "--engine", "process", "--quiet"]) == 0
    (line,) = (line for where, line in command_lines() if RUN_TUTORIAL.name in where and " compare " in line)
    capsys.readouterr()
    assert invoke([*shlex.split(line)[1:], "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["comparisons"]
    means = [found["arms"][arm]["mean"] for arm in ("baseline", "variant")]
    assert means == [1.0, 0.5]
