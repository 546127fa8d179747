"""An experiment.yaml to the authored config, with every error at its file and line and the near name suggested."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError

from labaudit.errors import BadInput
from labaudit.planning.yaml_source import Located, Path_, load_yaml
from labaudit.records.acp_permissions import WHOLE_SENTENCE
from labaudit.records.experiment import Experiment

_PLAIN_WORDS = (
    ("Value error, ", ""),
    ("valid tuple", "list"),
    ("valid dictionary", "mapping of names to values"),
    ("Tuple should", "the list should"),
    (" after validation", ""),
)


def load_experiment(path: Path) -> tuple[Experiment, Located]:
    """The authored experiment and the lines of its parts."""
    located = load_yaml(path)
    if not isinstance(located.value, dict):
        hint = "`labaudit init` writes one to start from"
        raise BadInput("should hold the experiment's settings by name", where=located.file, hint=hint)
    try:
        return Experiment.model_validate(located.value), located
    except ValidationError as error:
        raise BadInput("\n".join(_sentences(error, located)), hint="docs/formats.md lists every key") from error


def _sentences(error: ValidationError, located: Located) -> list[str]:
    found: dict[tuple[str, str], None] = {}
    for item in error.errors(include_url=False, include_context=False):
        path: Path_ = tuple(part for part in item["loc"] if not _is_union_tag(part))
        if item["type"] == "extra_forbidden":
            key = str(path[-1])
            known = _known_keys(path[:-1])
            near = difflib.get_close_matches(key, known, n=1)
            hint = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(known) or 'nothing'}"
            sentence = f'unknown key "{key}"{_in(path[:-1])}; {hint}'
        elif item["type"] == "missing":
            sentence = f'required key "{path[-1]}" is missing{_in(path[:-1])}'
        elif item["type"] == WHOLE_SENTENCE:
            sentence = f"{_dotted(path)}: {item['msg']}"
        else:
            message = _in_words(item["msg"])
            sentence = f"{_dotted(path)}: {message[:1].lower()}{message[1:]}, got {_short(item.get('input'))}"
        found[(located.where(path), sentence)] = None
    return [f"{where}: {sentence}" for where, sentence in found]


def _in_words(message: str) -> str:
    """pydantic's message in the words of a YAML file, which has lists where Python has tuples."""
    for python, plain in _PLAIN_WORDS:
        message = message.replace(python, plain)
    return message


def _is_union_tag(part: str | int) -> bool:
    # pydantic puts the name of the tried union branch into the location; it is no key of the file.
    return isinstance(part, str) and ("[" in part or part in {"str", "int", "float", "bool", "none"})


def _known_keys(path: Path_) -> list[str]:
    model: type[BaseModel] | None = Experiment
    for part in path:
        if isinstance(part, int):
            continue
        if model is None or part not in model.model_fields:
            return []
        model = _model_in(model.model_fields[part].annotation)
    return sorted(model.model_fields) if model else []


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        found = _model_in(argument)
        if found is not None:
            return found
    return None


def _in(path: Path_) -> str:
    return f" in {_dotted(path)}" if path else ""


def _dotted(path: Path_) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
