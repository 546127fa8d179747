"""The docker engine: finds the engine, resolves images, opens sandboxes, clears leftovers."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import docker

from labaudit.engines.docker.api import BROKEN, Facts, calling, connect
from labaudit.engines.docker.creation import Places
from labaudit.engines.docker.images import EngineImages
from labaudit.engines.docker.joined import JoinedNetwork, TrialNetworks
from labaudit.engines.docker.sandbox import DockerSandbox, Surroundings
from labaudit.engines.host.ownership import OWNER, PREFIX, Owner
from labaudit.engines.host.staging import Staging
from labaudit.engines.host.surfaces import Surfaces, reap_folders
from labaudit.engines.protocol import EngineName, Reaped, ResolvedImage
from labaudit.engines.running.inputs import staged_inputs
from labaudit.engines.running.ports import forwarded_ports
from labaudit.engines.spec import SandboxSpec

INNER_ID = 65532


class DockerEngine:
    """Sandboxes as containers."""

    name: EngineName = "docker"

    def __init__(
        self, client: docker.APIClient, *, egress_network: str | None = None, names: tuple[str, ...] = ()
    ) -> None:
        """`egress_network`: the engine's network through which egress proxies go out (LABAUDIT_EGRESS_NETWORK);
        `names`: further `name:address` pairs that they know."""
        self._client = client
        self._images = EngineImages(client)
        self._staging = Staging()
        outward = egress_network or os.environ.get("LABAUDIT_EGRESS_NETWORK") or "bridge"
        self._networks = TrialNetworks(client, lambda: self.resolve_image(None).id, outward, names)
        self._facts: dict[str, object] = {}

    @classmethod
    def connect(cls) -> DockerEngine:
        """The engine at DOCKER_HOST or the default socket. EnvironmentLacks with the fix where none answers."""
        return cls(connect())

    def facts(self) -> dict[str, object]:
        if not self._facts:
            with calling("say its version"):
                version, info = self._client.version(), self._client.info()
            self._facts = _facts(version, info)
        return self._facts

    def resolve_image(self, reference: str | None) -> ResolvedImage:
        return self._images.resolve(reference)

    def image_archive(self, image_id: str, folder: Path) -> Path | None:
        return self._images.archive(image_id, folder)

    def open(self, spec: SandboxSpec) -> DockerSandbox:
        ports = forwarded_ports(spec)
        # as an ordinary user with access to the engine, the trial is that user: nobody else could write the surfaces
        user = spec.user or ((INNER_ID, INNER_ID) if os.geteuid() == 0 else (os.geteuid(), os.getegid()))
        surfaces = Surfaces.create(spec.limits, user)
        network: JoinedNetwork | None = None
        try:
            inputs = staged_inputs(spec, self._staging)
            names = ("in", "out", "workspace", "state")
            places = Places({name: surfaces / name for name in names}, inputs.mounts, user)
            network = self._networks.open(spec, ports, surfaces.run)
            around = Surroundings(self._client, places, network, self.facts())
            return DockerSandbox(spec, surfaces, surfaces.host_paths(inputs.dataset, inputs.harness), around)
        except BaseException:
            if network is not None:
                network.release()
            surfaces.remove()
            raise

    def with_egress_network(self, network: str, names: tuple[str, ...] = ()) -> DockerEngine:
        """The same engine and connection, with the egress proxies on another network; end it by `close_networks`."""
        return DockerEngine(self._client, egress_network=network, names=names)

    def close_networks(self) -> None:
        """Ends the companions and copies, and keeps the connection."""
        self._networks.close()
        self._staging.close()

    @property
    def client(self) -> docker.APIClient:
        """The connection, for the parts of this package that make containers of their own."""
        return self._client

    def reap(self) -> tuple[Reaped, ...]:
        gone = []
        with calling("list its containers"):
            found = self._client.containers(all=True, filters={"label": OWNER})
        # a trial before the holder whose namespace it is in: some engines insist on that order
        for container in sorted(found, key=lambda made: (made.get("Labels") or {}).get(PREFIX + "role") != "trial"):
            labels = {key.removeprefix(PREFIX): value for key, value in (container.get("Labels") or {}).items()}
            owner = Owner.parse(labels.get("owner", ""))
            if owner is not None and owner.is_dead():
                with suppress(*BROKEN):
                    self._client.remove_container(container["Id"], force=True, v=True)
                    gone.append(Reaped("container", container["Id"][:12], labels))
        return (*gone, *self._reap_networks(), *reap_folders())

    def _reap_networks(self) -> Iterator[Reaped]:
        """The bridges of canaries and stand-ins: a runner that is killed in its self-test leaves one. After containers,
        because an engine keeps a network that something is still on."""
        with calling("list its networks"):
            found = self._client.networks(filters={"label": OWNER})
        for network in found:
            labels = {key.removeprefix(PREFIX): value for key, value in (network.get("Labels") or {}).items()}
            owner = Owner.parse(labels.get("owner", ""))
            if owner is not None and owner.is_dead():
                with suppress(*BROKEN):
                    self._client.remove_network(network["Id"])
                    yield Reaped("network", str(network["Name"]), labels)

    def close(self) -> None:
        self.close_networks()
        self._client.close()

    def __enter__(self) -> DockerEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _facts(version: Facts, info: Facts) -> dict[str, object]:
    components = {part.get("Name"): part.get("Version") for part in version.get("Components") or []}
    return {
        "engine": "docker",
        "version": version.get("Version"),
        "api_version": version.get("ApiVersion"),
        "components": components,
        "kernel": platform.release(),
        "storage_driver": info.get("Driver"),
        "cgroup_version": str(info.get("CgroupVersion") or "1"),
        "cgroup_driver": info.get("CgroupDriver"),
        "default_runtime": info.get("DefaultRuntime"),
        "security_options": [str(option).split(",")[0] for option in info.get("SecurityOptions") or []],
        "swap_limit": info.get("SwapLimit"),
        "pids_limit": info.get("PidsLimit"),
    }
