"""A scheduler and workers of Dask as processes of their own on this machine, over TLS or without."""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate(folder: Path) -> dict[str, str]:
    """One self-signed certificate for scheduler, workers and client, and Dask's settings for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "labaudit test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    data = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "tls.key").write_bytes(data)
    settings = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(folder / "tls.pem")}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        settings[f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT"] = str(folder / "tls.pem")
        settings[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"] = str(folder / "tls.key")
    return {**os.environ, **settings, "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def program(*arguments: str, env: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A module of Python as a process, killed at the end."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", *arguments], env=env, stdout=log, stderr=log, cwd=folder)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def scheduler(
    stack: ExitStack, port: int, env: dict[str, str], folder: Path, *, protocol: str = "tls"
) -> subprocess.Popen[bytes]:
    """A scheduler that ends with the stack."""
    command = ("distributed.cli.dask_scheduler", "--protocol", protocol, "--host", "127.0.0.1", "--port", str(port),
               "--no-dashboard", "--no-show")  # fmt: skip
    return stack.enter_context(program(*command, env=env, folder=folder))


def worker(
    stack: ExitStack, name: str, port: int, env: dict[str, str], folder: Path, *, protocol: str = "tls"
) -> subprocess.Popen[bytes]:
    """A worker with two slots that ends with the stack."""
    command = ("distributed.cli.dask_worker", f"{protocol}://127.0.0.1:{port}", "--name", name, "--no-nanny",
               "--nthreads", "2", "--resources", "sandbox=2", "--local-directory", str(folder / name),
               "--no-dashboard")  # fmt: skip
    return stack.enter_context(program(*command, env=env, folder=folder))
