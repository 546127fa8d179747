"""Streams: counted and hashed whole, kept in part, with the init's report taken off their head."""

from __future__ import annotations

import hashlib
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labaudit.engines.observation.init_script import BEGIN, END, MAX_REPORT
from labaudit.engines.running.capture import StreamCapture, pump


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(0, 40), st.integers(0, 40))
def test_however_it_is_cut_head_tail_count_and_hash_are_those_of_the_whole(
    chunks: list[bytes], head: int, tail: int
) -> None:
    capture = StreamCapture(head, tail)
    for chunk in chunks:
        capture.feed(chunk)
    seen, whole = capture.finish(), b"".join(chunks)
    assert (seen.total, seen.sha256) == (len(whole), hashlib.sha256(whole).hexdigest())
    assert seen.head == whole[:head]
    rest = whole[head:]
    assert seen.tail == (rest[-tail:] if tail else b"")
    assert seen.truncated == (len(whole) > head + len(seen.tail))
    if not seen.truncated:
        assert seen.rendered() == whole


@given(st.integers(1, 7))
def test_a_report_in_pieces_is_taken_off_and_the_rest_kept(size: int) -> None:
    capture = StreamCapture(100, 100, expects_report=True)
    stream = BEGIN + b"== a\nb\n" + END + b"harness words"
    for start in range(0, len(stream), size):
        capture.feed(stream[start : start + size])
    assert capture.finish().rendered() == b"harness words"
    assert capture.report == b"== a\nb\n"


def test_without_a_report_nothing_is_lost() -> None:
    capture = StreamCapture(100, 100, expects_report=True)
    capture.feed(b"no report here")
    assert capture.reported.is_set()
    assert capture.finish().rendered() == b"no report here"
    assert capture.report is None


def test_a_report_without_end_is_given_up_and_counts_as_output() -> None:
    capture = StreamCapture(10, 10, expects_report=True)
    capture.feed(BEGIN + b"x" * (MAX_REPORT + 1))
    assert capture.report is None
    assert capture.finish().total == len(BEGIN) + MAX_REPORT + 1


def test_a_live_reader_that_goes_away_does_not_stop_the_count() -> None:
    read, write = os.pipe()
    capture = StreamCapture(10, 10, live_fd=write)
    capture.feed(b"one")
    assert os.read(read, 10) == b"one"
    os.close(read)
    capture.feed(b"two")
    assert capture.finish().total == 6


@pytest.mark.parametrize("text", [b"\x1e", BEGIN[:5]])
def test_a_stream_that_ends_within_the_marker_is_output(text: bytes) -> None:
    capture = StreamCapture(100, 0, expects_report=True)
    capture.feed(text)
    assert capture.finish().rendered() == text


def test_a_pipe_that_outlives_its_trial_is_left_to_the_thread_that_reads_it() -> None:
    """A process that escaped still holds it: closed under its reader, its number could be another trial's pipe."""
    reading, writing = os.pipe()
    capture = StreamCapture(100, 100)
    pumping = threading.Thread(target=pump, args=(reading, capture), daemon=True)
    pumping.start()
    os.write(writing, b"of the trial")
    while not capture._total:
        pass
    ended = capture.finish()
    os.fstat(reading)
    os.write(writing, b"too late")
    pumping.join(30)
    assert not pumping.is_alive()
    with pytest.raises(OSError):
        os.fstat(reading)
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"nobody reads")
    os.close(writing)
    assert ended.rendered() == b"of the trial"
    assert capture._total == len(b"of the trial")
