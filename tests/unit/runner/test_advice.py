"""What `labaudit run` says besides the grades: where to look first when an agent fails or nothing was measured."""

from __future__ import annotations

from pathlib import Path

from labaudit.pipeline.advice import last_words
from tests.experiments import ECHO, run, write_experiment


def test_a_harness_that_crashes_is_quoted_with_the_place_of_its_log(tmp_path: Path) -> None:
    write_experiment(tmp_path, agent="import not_installed_here")
    result = run(tmp_path)
    sentence = next(text for text in result.warnings if "ended in error" in text)
    assert "No module named 'not_installed_here'" in sentence
    named = Path(sentence.split("the first: ")[1].split(": ")[0])
    assert named.read_text().startswith("Traceback")


def test_a_primary_metric_without_any_value_is_told(tmp_path: Path) -> None:
    write_experiment(tmp_path, evaluators=[{"id": "exact", "type": "exact_match", "expected": "expcted"}])
    [sentence] = run(tmp_path).warnings
    assert sentence.startswith("the primary metric ")
    assert "has no value in any trial (4 absent)" in sentence


def test_a_good_run_has_nothing_to_warn_of(tmp_path: Path) -> None:
    write_experiment(tmp_path, agent=ECHO)
    assert run(tmp_path).warnings == ()


def test_last_words_are_printable_and_bounded(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    assert last_words(log) == ""
    log.write_bytes(b"\n\n")
    assert last_words(log) == ""
    log.write_bytes(b"x" * 9000 + b"\n\x1b[31mred\xff\x1b[0m" + b"y" * 900 + b"\n \n")
    assert last_words(log).startswith("[31mred\ufffd[0myyy")
    assert len(last_words(log)) == 160
