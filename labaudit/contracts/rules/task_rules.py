"""AtomicTask: rules T1-T3."""

from __future__ import annotations

from labaudit.contracts.rules.finding import Findings, Json, at, error, is_number, kind_of, required_text, unknown_keys

TASK_FIELDS = frozenset(["id", "name", "type", "input", "expected", "context", "metadata", "extensions"])
METADATA_FIELDS = frozenset(["tags", "priority", "timeout"])


def check_task(task: Json) -> Findings:
    """Every T rule on one AtomicTask."""
    yield from task_has_its_fields(task)
    yield from task_has_no_other_field(task)
    yield from metadata_has_only_tags_priority_and_timeout(task)


def task_has_its_fields(task: Json) -> Findings:
    """T1: id, name and type are non-empty strings, input is there (null is fine), metadata is an object."""
    yield from required_text(task, ("id", "name", "type"), "T1")
    if "input" not in task:
        yield error("T1", "$.input", "input is missing", "null is an input; leaving it out is not")
    if not isinstance(task.get("metadata"), dict):
        found = kind_of(task["metadata"]) if "metadata" in task else "nothing"
        yield error("T1", "$.metadata", f"metadata must be an object, there is {found}", "an empty object is fine")
    for key in ("context", "extensions"):
        if key in task and not isinstance(task[key], dict):
            yield error("T1", at("$", key), f"{key} must be an object, there is {kind_of(task[key])}")


def task_has_no_other_field(task: Json) -> Findings:
    """T2: a module's own fields live in extensions."""
    yield from unknown_keys(task, TASK_FIELDS, "T2", hint="put it in extensions")


def metadata_has_only_tags_priority_and_timeout(task: Json) -> Findings:
    """T3: tags are strings, priority is a number, timeout is milliseconds, 0 or more."""
    metadata = task.get("metadata")
    if not isinstance(metadata, dict) or not metadata:
        return
    yield from unknown_keys(metadata, METADATA_FIELDS, "T3", "$.metadata")
    tags = metadata.get("tags", [])
    if not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        yield error("T3", "$.metadata.tags", "tags must be an array of strings")
    if "priority" in metadata and not is_number(metadata["priority"]):
        yield error("T3", "$.metadata.priority", f"priority must be a number, there is {kind_of(metadata['priority'])}")
    timeout = metadata.get("timeout", 0)
    if not (is_number(timeout) and timeout >= 0):
        yield error("T3", "$.metadata.timeout", "timeout must be a number of milliseconds, 0 or more")
