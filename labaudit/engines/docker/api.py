"""The one door to the docker library: connecting, and its errors as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import docker
import docker.errors
import docker.utils
import requests.exceptions

from labaudit.errors import EnvironmentLacks
from labaudit.resources import policy_path

REQUEST_SECONDS = 120
GONE = (docker.errors.NotFound,)
BROKEN = (requests.exceptions.ConnectionError, requests.exceptions.Timeout, docker.errors.DockerException, OSError)
"""What a call to an engine that has gone, or that cannot do it, may raise. ReadTimeout hides as ConnectionError."""

_PROCESSES = 32768
_podman: WeakKeyDictionary[docker.APIClient, bool] = WeakKeyDictionary()

Facts = dict[str, Any]
"""JSON as the engine gives it."""


def connect() -> docker.APIClient:
    """A client for DOCKER_HOST or the default socket. EnvironmentLacks where nothing answers or it is elsewhere."""
    settings = docker.utils.kwargs_from_env()
    address = str(settings.get("base_url", "unix:///var/run/docker.sock"))
    if not address.startswith(("unix:", "http+unix:", "/")):
        raise EnvironmentLacks(
            "the engine must run on this machine: surfaces are folders of this host",
            where=address,
            hint="unset DOCKER_HOST, or point it at a unix:// socket",
        )
    try:
        client = docker.APIClient(version="auto", timeout=REQUEST_SECONDS, **settings)
        parts = [str(part.get("Name")) for part in client.version().get("Components") or []]
    except BROKEN as error:
        raise EnvironmentLacks(
            f"no Docker-compatible engine answers: {said_by(error)}",
            where=address,
            hint="start dockerd (or podman system service) and make its socket readable for this user",
        ) from error
    _podman[client] = any("podman" in part.lower() for part in parts)
    return client


def create(client: docker.APIClient, body: Facts, *, name: str | None = None) -> str:
    """Makes a container from the API's own create body; returns its id."""
    if is_podman(client):
        body = _in_podmans_words(body)
    made: Facts = client.create_container_from_config(body, name=name)  # type: ignore[no-untyped-call]
    return str(made["Id"])


def is_podman(client: docker.APIClient) -> bool:
    """Whether Podman answers in Docker's name."""
    return _podman.get(client, False)


def _in_podmans_words(body: Facts) -> Facts:
    """Podman reads a seccomp profile from a file on its side (Docker wants the profile itself), bounds a scratch file
    system by size alone, and adds a limit on processes that may be higher than its service can give."""
    host = dict(body["HostConfig"])
    path = f"seccomp={policy_path('seccomp.json')}"
    asked = host.get("SecurityOpt", [])
    host["SecurityOpt"] = [path if str(option).startswith("seccomp={") else option for option in asked]
    scratch = {target: str(options).split(",") for target, options in host["Tmpfs"].items()}
    host["Tmpfs"] = {
        target: ",".join(option for option in options if not option.startswith("nr_inodes="))
        for target, options in scratch.items()
    }
    host["Ulimits"] = [*host["Ulimits"], {"Name": "nproc", "Soft": _PROCESSES, "Hard": _PROCESSES}]
    return {**body, "HostConfig": host}


@contextmanager
def calling(what: str) -> Iterator[None]:
    """Errors of a call, as EnvironmentLacks with the engine's own words."""
    try:
        yield
    except BROKEN as error:
        raise EnvironmentLacks(
            f"the engine could not {what}: {said_by(error)}", where="docker", hint="run `labaudit doctor`"
        ) from error


def said_by(error: BaseException) -> str:
    """The engine's own words, without the library's wrapping, in one line."""
    text = getattr(error, "explanation", None) or _refusal_below(error) or str(error)
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    return " ".join(str(text).split())[:400]


def _refusal_below(error: BaseException) -> str:
    """The system's own answer where the library wrapped it several times."""
    current: BaseException | None = error
    while current is not None:
        if isinstance(current, (PermissionError, FileNotFoundError, ConnectionRefusedError)):
            return str(current.strerror)
        current = current.__cause__ or current.__context__
    return ""
