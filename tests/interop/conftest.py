"""A Sigstore of our own on loopback, for the tests that sign keyless."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jwt
import pytest

NODE = Path(__file__).parents[1] / "node"


@dataclass(frozen=True)
class Stack:
    """Where the services are and what trusts them."""

    folder: Path
    issuer: str

    @property
    def trust_config(self) -> Path:
        return self.folder / "trust_config.json"

    @property
    def trusted_root(self) -> Path:
        return self.folder / "trusted_root.json"

    def token(self, email: str = "runner@lab.test") -> str:
        """An identity that the certificate authority takes; it checks the audience, not who signed the token."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": "sigstore", "sub": email, "email": email}
        return jwt.encode({**claims, "iat": now - 5, "nbf": now - 5, "exp": now + 600}, "x" * 32, algorithm="HS256")


@contextmanager
def running_stack(folder: Path, minutes_ahead: int = 0) -> Iterator[Stack]:
    """The services, for as long as the block lasts; certificates may be dated ahead of the time of signing."""
    command = ["node", "sigstore_stack.js", str(folder), str(minutes_ahead)]
    with subprocess.Popen(command, cwd=NODE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            assert line.startswith("ready "), line
            yield Stack(folder, f"http://127.0.0.1:{line.split()[1]}")
        finally:
            server.terminate()
            server.wait(timeout=10)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("sigstore")) as made:
        yield made
