"""The bubblewrap engine: finds bwrap, prepares groups, surfaces and proxies, and opens sandboxes."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from labaudit.engines.bubblewrap.command import INNER_ID, Places
from labaudit.engines.bubblewrap.sandbox import BubblewrapSandbox, Surroundings, tree_has_shell
from labaudit.engines.host.cgroups import ControlGroup, create_group, leftover_groups
from labaudit.engines.host.staging import Staging
from labaudit.engines.host.surfaces import Surfaces, owned_folder, reap_folders, remove_folder
from labaudit.engines.images.cache import BUNDLED_NAMES, ImageCache
from labaudit.engines.protocol import EngineName, Reaped, ResolvedImage
from labaudit.engines.running.inputs import staged_inputs
from labaudit.engines.running.ports import forwarded_ports
from labaudit.engines.spec import SandboxSpec, SurfacePaths
from labaudit.errors import EnvironmentLacks
from labaudit.network.lease import ProxyLease
from labaudit.network.local_proxy import LocalProxies

# Not the whole root: bwrap walks every mount below what it binds, and surfaces of other sandboxes come and go there.
_LINKS = tuple(word for name in ("/bin", "/lib", "/lib64") for word in ("--ro-bind-try", name, name))
_TRIAL = ("--unshare-user", "--unshare-net", "--unshare-pid", "--ro-bind", "/usr", "/usr", *_LINKS, "--", "/bin/true")


class BubblewrapEngine:
    """Sandboxes without a daemon."""

    name: EngineName = "bubblewrap"

    def __init__(self, program: str, version: str) -> None:
        self._program, self._version = program, version
        self._cache = ImageCache()
        self._staging = Staging()
        self._pool_folders: list[Path] = []
        self._proxies = LocalProxies(self._pool_folder)
        self._spawner = ThreadPoolExecutor(1, thread_name_prefix="labaudit-spawn")

    @classmethod
    def detect(cls) -> BubblewrapEngine:
        """The engine, if bwrap is there and the kernel lets it make namespaces; else EnvironmentLacks with the fix."""
        program = shutil.which("bwrap")
        if program is None:
            raise EnvironmentLacks("bubblewrap is not installed", hint="install the package bubblewrap")
        attempt = subprocess.run([program, *_TRIAL], capture_output=True, check=False)
        if attempt.returncode != 0:
            words = attempt.stderr.decode(errors="replace").strip()[-200:]
            raise EnvironmentLacks(
                f"bwrap cannot make namespaces here: {words}",
                hint="allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
                "kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for bwrap)",
            )
        answer = subprocess.run([program, "--version"], capture_output=True, check=False).stdout
        return cls(program, answer.decode(errors="replace").split()[-1])

    def facts(self) -> dict[str, object]:
        return {"engine": self.name, "version": self._version, "kernel": platform.release(), "root": os.geteuid() == 0}

    def resolve_image(self, reference: str | None) -> ResolvedImage:
        if reference is None or reference in BUNDLED_NAMES:
            return self._cache.bundled().image
        if (path := Path(reference)).is_file():
            return self._cache.from_archive(path).image
        if found := self._cache.find(reference):
            return found.image
        raise EnvironmentLacks(
            f'there is no image "{reference}"',
            where="runtime.image",
            hint="bubblewrap knows the bundled image and archives: `docker save -o image.tar IMAGE`, then image.tar",
        )

    def image_archive(self, image_id: str, folder: Path) -> Path | None:
        cached = self._cache.find(image_id)
        return cached.archive if cached is not None else None

    def open(self, spec: SandboxSpec) -> BubblewrapSandbox:
        cached = self._cache.find(spec.image)
        if cached is None:
            raise EnvironmentLacks(f"image {spec.image} is not in the cache", hint="resolve the image first")
        tree = self._cache.tree(cached)
        if not tree_has_shell(tree):
            raise EnvironmentLacks("the image has no /bin/sh, which the sandbox's init needs", where=cached.image.name)
        forwarded_ports(spec)
        # as root the sandbox gets a user of its own; as an ordinary user it is that user, mapped to another number
        user = (spec.user or (INNER_ID, INNER_ID)) if os.geteuid() == 0 else None
        surfaces = Surfaces.create(spec.limits, user or (os.geteuid(), os.getegid()))
        group: ControlGroup | str = ""
        try:
            host, places = self._places(spec, surfaces, tree)
            group = create_group(surfaces.id, spec.limits)
            lease = self._proxy(spec, surfaces)
            around = Surroundings(
                places, dict(cached.image.env), user, None if isinstance(group, str) else group,
                group if isinstance(group, str) else "", lease, self._spawner, self.facts(),
            )  # fmt: skip
            return BubblewrapSandbox(spec, surfaces, host, around)
        except BaseException:
            if isinstance(group, ControlGroup):
                group.remove()
            surfaces.remove()
            raise

    def _proxy(self, spec: SandboxSpec, surfaces: Surfaces) -> ProxyLease | None:
        if spec.network.mode != "allowlist_enforced":
            return None
        return self._proxies.lease(spec.network, surfaces.run)

    def _pool_folder(self) -> Path:
        """Where a pooled proxy lives: a folder that the next runner clears away should this one be killed."""
        folder = owned_folder("proxy")
        self._pool_folders.append(folder)
        return folder

    def _places(self, spec: SandboxSpec, surfaces: Surfaces, tree: Path) -> tuple[SurfacePaths, Places]:
        inputs = staged_inputs(spec, self._staging)
        etc = surfaces / "etc"
        etc.mkdir(mode=0o755)
        (etc / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
        (etc / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        (etc / "hostname").write_text("sandbox\n")
        names = ("in", "out", "workspace", "state")
        places = Places(self._program, tree, {name: surfaces / name for name in names}, inputs.mounts, etc)
        return surfaces.host_paths(inputs.dataset, inputs.harness), places

    def reap(self) -> tuple[Reaped, ...]:
        groups = []
        for group in leftover_groups():
            with suppress(OSError):
                for pid in group.processes():  # a harness in a dead runner's group has nobody left to end it
                    os.kill(pid, signal.SIGKILL)
                group.remove()
                groups.append(Reaped("cgroup", next(iter(group.folders.values())).name))
        return (*reap_folders(), *groups)

    def close(self) -> None:
        self._proxies.close()
        while self._pool_folders:
            remove_folder(self._pool_folders.pop())
        self._staging.close()
        self._spawner.shutdown(wait=False)

    def __enter__(self) -> BubblewrapEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
