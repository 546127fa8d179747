"""`labaudit a2a`: packets to canonical events, and the N1-N7 matrix over a folder of packets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

import click
import orjson

from labaudit.contracts.a2a.convert import convert_packet, event_bytes
from labaudit.contracts.a2a.errors import AdapterError
from labaudit.contracts.a2a.folder_check import FolderReport, check_folder
from labaudit.contracts.a2a.packet import MEDIA_TYPE, Options, RawPayload, RawWriter, name_raw_bytes
from labaudit.contracts.a2a.stream import convert_lines
from labaudit.errors import BadInput, LabauditError

_CAP = click.IntRange(min=0)


@click.group()
def a2a() -> None:
    """Convert and check A2A packets: what was visible in them, nothing more.

    Example: labaudit a2a convert packet.json --mode lenient
    """


@a2a.command()
@click.argument("file", default="-", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("--mode", type=click.Choice(["strict", "lenient"]), default="strict", show_default=True)
@click.option("--max-payload-bytes", type=_CAP, help="Refuse larger packets.")
@click.option("--max-json-depth", type=_CAP, help="Refuse deeper packets; the outermost object is at depth 1.")
@click.option("--max-array-length", type=_CAP, help="Refuse packets with a longer array.")
@click.option("--version-hint", help="A2A version of packets that name none.")
@click.option("--jsonl", is_flag=True, help="One packet per line in, one event per line out.")
@click.option("--store", type=click.Path(path_type=Path, file_okay=False), help="Keep raw packets in this folder.")
@click.option("--json", "as_json", is_flag=True, help="Errors as JSON on stderr.")
def convert(
    file: Path,
    mode: Literal["strict", "lenient"],
    max_payload_bytes: int | None,
    max_json_depth: int | None,
    max_array_length: int | None,
    version_hint: str | None,
    jsonl: bool,
    store: Path | None,
    as_json: bool,
) -> None:
    """One packet in, one canonical event out. FILE is - for standard input.

    Exit code 1: the packet breaks the contract and nothing is emitted; 2: it is no JSON.

    Example: labaudit a2a convert packets.jsonl --jsonl --mode lenient > events.jsonl
    """
    options = Options(mode, max_payload_bytes, max_json_depth, max_array_length, version_hint)
    work = _convert_stream if jsonl else _convert_one
    try:
        with _reading(file):
            stream = click.open_file(str(file), "rb")
        with stream:
            code = work(stream, file, options, _raw_writer(store), as_json)
        sys.stdout.buffer.flush()
    except AdapterError as error:
        code = _report(error, as_json)
    except BrokenPipeError:
        # Whoever read the events has had enough of them: that says nothing about the packets.
        raise
    except OSError as error:
        code = _report(AdapterError("infrastructure", f"the events cannot be written: {error.strerror}"), as_json)
    click.get_current_context().exit(code)


@a2a.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
def check(folder: Path, as_json: bool) -> None:
    """The N1-N7 matrix over all packets in FOLDER, and the six closing questions, computed.

    A case that no packet exercises is shown as such: it did not hold, it was not tried. Exit code 1 when a case broke;
    2 when no packet exercised any.

    Example: labaudit a2a check packets/
    """
    report = check_folder(folder)
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(report.as_json()) + b"\n")
    else:
        _show(report)
    if report.holds and not report.tried:
        raise BadInput("no packet exercised any case", where=str(folder), hint="a folder of A2A packets is expected")
    click.get_current_context().exit(0 if report.holds else 1)


def _convert_one(stream: IO[bytes], file: Path, options: Options, keep_raw: RawWriter, as_json: bool) -> int:
    # One byte past the cap is enough to know that a packet is too large.
    cap = options.max_payload_bytes
    with _reading(file):
        data = stream.read(-1 if cap is None else cap + 1)
    sys.stdout.buffer.write(event_bytes(convert_packet(data, options, keep_raw)) + b"\n")
    return 0


def _convert_stream(stream: IO[bytes], file: Path, options: Options, keep_raw: RawWriter, as_json: bool) -> int:
    worst = 0
    write: Callable[[bytes], object] = sys.stdout.buffer.write
    for result in convert_lines(_lines(stream, file), options, keep_raw):
        if result.event is not None:
            write(event_bytes(result.event) + b"\n")
        elif result.error is not None:
            worst = max(worst, _report(result.error, as_json, line=result.line))
    return worst


def _report(error: AdapterError, as_json: bool, line: int | None = None) -> int:
    if as_json:
        place = {} if line is None else {"line": line}
        click.echo(orjson.dumps({**error.as_error_object(), **place}), err=True)
    else:
        place_text = "" if line is None else f"line {line}: "
        click.echo(f"labaudit: {place_text}{error.kind}: {error}", err=True)
    return error.exit_code


def _raw_writer(store: Path | None) -> RawWriter:
    if store is None:
        return name_raw_bytes
    from labaudit.store.artifact_store import ArtifactStore

    artifacts = ArtifactStore(store)

    def keep(data: bytes) -> RawPayload:
        raw = name_raw_bytes(data)
        try:
            reference = artifacts.put(data, MEDIA_TYPE)
        except LabauditError as error:
            raise AdapterError("infrastructure", f"the raw packet could not be kept: {error}") from error
        return RawPayload(raw.sha256, raw.size, raw.media_type, reference)

    return keep


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """What fails in here is the input's fault; writing events stays outside, for that is another fault."""
    try:
        yield
    except OSError as error:
        hint = "give a packet file, or - for stdin"
        raise AdapterError("config", f"{file}: {error.strerror or error}", hint=hint) from error


def _lines(stream: IO[bytes], file: Path) -> Iterator[bytes]:
    with _reading(file):
        yield from stream


def _show(report: FolderReport) -> None:
    click.echo(f"{report.packets} packets, {len(report.refused)} gave no event")
    for result in report.matrix:
        packets = len(result.held) + len(result.broken)
        click.echo(f"{result.case.id}  {result.status:13}  {packets:4} packets  {result.case.situation}")
        for name in result.broken:
            click.echo(f"    broken by {name}; expected: {result.case.expected}")
    for answer in report.answers:
        click.echo(f"{answer.answer:11}  {answer.question}  ({answer.basis})")
    for refusal in report.refused:
        click.echo(f"refused  {refusal['packet']}: {refusal['error_kind']}: {refusal['message']}")
    for name in report.changed_events:
        click.echo(f"changed  {name} is not what its packets give")
