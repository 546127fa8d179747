"""Picks the engine: by name, or `auto` (docker where it answers, else bubblewrap), and says why.

`process` gives no isolation, so it is never picked by `auto`.
"""

from __future__ import annotations

from labaudit.engines.protocol import Engine
from labaudit.errors import BadInput, EnvironmentLacks

ENGINE_NAMES = ("auto", "docker", "bubblewrap", "process")


def select_engine(name: str = "auto") -> tuple[Engine, str]:
    """The engine and one sentence on why it was taken. EnvironmentLacks where none can run here."""
    if name == "docker":
        return _docker(), "docker was asked for by name"
    if name == "bubblewrap":
        return _bubblewrap(), "bubblewrap was asked for by name"
    if name == "process":
        return _process(), "process was asked for by name: no isolation"
    if name != "auto":
        known = ", ".join(ENGINE_NAMES)
        raise BadInput(f'unknown engine "{name}"', hint=f"known engines: {known}")
    return _first_that_answers()


def _first_that_answers() -> tuple[Engine, str]:
    try:
        return _docker(), "auto: a Docker-compatible engine answers"
    except EnvironmentLacks as no_docker:
        docker_reason = no_docker.what
    try:
        return _bubblewrap(), f"auto: bubblewrap, because docker is not there ({docker_reason})"
    except EnvironmentLacks as no_bubblewrap:
        raise EnvironmentLacks(
            "no sandbox engine can run here",
            where="engine auto",
            hint=f"docker: {docker_reason}; bubblewrap: {no_bubblewrap.what}. Run `labaudit doctor` for the fixes; "
            "`--engine process` runs without isolation and is graded leaky.",
        ) from no_bubblewrap


def _docker() -> Engine:
    from labaudit.engines.docker.engine import DockerEngine

    return DockerEngine.connect()


def _bubblewrap() -> Engine:
    from labaudit.engines.bubblewrap.engine import BubblewrapEngine

    return BubblewrapEngine.detect()


def _process() -> Engine:
    from labaudit.engines.process_engine import ProcessEngine

    return ProcessEngine()
