"""What all records share: reading, writing, absence and null."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from labaudit.errors import BadInput
from labaudit.records.event_envelope import EventEnvelope
from labaudit.records.hook_events import hook_event_from_json
from labaudit.records.ids import Ids
from labaudit.records.trial_output import TrialOutput
from labaudit.records.trial_record import TrialRecord

DOCUMENTS = Path(__file__).parent / "documents"
IDS = Ids(run_id="r", trial_id="t", variant_id="v", task_id="k", repl_idx=0)


def test_code_leaves_out_by_none_and_json_by_no_key() -> None:
    output = TrialOutput(ids=IDS, outcome="success", metrics=None, error=None)
    assert output.to_json().keys() == {"schema_version", "ids", "outcome"}


def test_json_with_a_null_in_place_of_absence_is_refused_with_the_key() -> None:
    value = TrialOutput(ids=IDS, outcome="success").to_json() | {"error": None}
    with pytest.raises(BadInput, match="error is null; leave the key out"):
        TrialOutput.from_json(value)


def test_an_answer_of_null_is_not_the_absence_of_an_answer() -> None:
    said_null = TrialOutput(ids=IDS, outcome="success", answer=None)
    assert said_null.to_json()["answer"] is None
    assert "answer" not in TrialOutput(ids=IDS, outcome="success").to_json()
    assert TrialOutput.from_bytes(said_null.to_bytes()) == said_null


def test_a_nullable_key_is_written_as_null() -> None:
    lost = TrialRecord.from_bytes((DOCUMENTS / "trial_record_v1/lost.json").read_bytes())
    assert lost.to_json()["events"] is None


def test_json_must_carry_the_version_that_code_need_not_write() -> None:
    value = TrialOutput(ids=IDS, outcome="success").to_json()
    del value["schema_version"]
    with pytest.raises(BadInput, match="schema_version is missing"):
        TrialOutput.from_json(value)


def test_a_refusal_names_file_place_and_how_much_more_there_is() -> None:
    data = b'{"schema_version":"trial_output_v1","ids":{"run_id":""},"outcome":"ok"}'
    with pytest.raises(BadInput) as caught:
        TrialOutput.from_bytes(data, where="trials/x/trial_output.json")
    assert caught.value.where == "trials/x/trial_output.json"
    assert caught.value.what.startswith("$.ids.run_id: ")
    assert "(and 5 more)" in caught.value.what
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"a":1,"a":2}', b'\xef\xbb\xbf{"a":1}', b"\xff"])
def test_bytes_that_hold_no_such_document_are_bad_input(data: bytes) -> None:
    with pytest.raises(BadInput):
        TrialOutput.from_bytes(data, where="x.json")


def test_a_whole_number_written_as_a_fraction_is_that_number_and_true_is_none() -> None:
    assert Ids.from_json(IDS.to_json() | {"repl_idx": 2.0}).repl_idx == 2
    for wrong in (True, "2", 2.5, -1):
        with pytest.raises(BadInput):
            Ids.from_json(IDS.to_json() | {"repl_idx": wrong})


def test_a_record_cannot_be_changed_and_its_lists_are_tuples() -> None:
    record = TrialRecord.from_bytes((DOCUMENTS / "trial_record_v1/completed.json").read_bytes())
    assert isinstance(record.files, tuple)
    with pytest.raises(ValidationError):
        record.index = 3  # type: ignore[misc]


def test_a_key_whose_name_python_reserves_keeps_its_name_in_json() -> None:
    value = json.loads((DOCUMENTS / "event_envelope_v1/full.json").read_text())
    event = EventEnvelope.from_json(value)
    assert event.hashchain.self_ == value["hashchain"]["self"]
    assert event.to_json()["hashchain"].keys() == {"prev", "self"}


def test_a_hook_event_becomes_the_class_of_its_kind() -> None:
    value = json.loads((DOCUMENTS / "hook_events_v1/control_ack.json").read_text())
    assert type(hook_event_from_json(value)).__name__ == "ControlAck"
    with pytest.raises(BadInput, match="expected tags"):
        hook_event_from_json({**value, "event_type": "nothing"}, where="harness_events.jsonl:3")
