"""What a sandbox costs per trial, against the bare tool doing the same: docker's own SDK, and plain bwrap.

    python benchmarks/bench_engines.py [rounds]

Every round measures all of them in turn, so that a busy machine slows them alike; medians are compared, and the fastest
of each, which a busy machine disturbs least.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from labaudit.engines.bubblewrap.engine import BubblewrapEngine
from labaudit.engines.images.cache import ImageCache
from labaudit.engines.protocol import Engine, Limits, NetworkSpec, SandboxLabels, SandboxSpec
from labaudit.errors import EnvironmentLacks

LABELS = SandboxLabels("bench", "trial")
LISTED = NetworkSpec("allowlist_enforced", ("a.example",), pooled=True, pool_key="bench")


def trial(engine: Engine, network: NetworkSpec = NetworkSpec()) -> Callable[[], None]:  # noqa: B008
    """One whole trial through the engine: surfaces, sandbox, evidence, collection, removal."""
    spec = SandboxSpec(engine.resolve_image(None).id, ("true",), LABELS, limits=Limits(), network=network, timeout_s=60)

    def run() -> None:
        sandbox = engine.open(spec)
        try:
            sandbox.start()
            assert sandbox.wait().exit_code == 0
        finally:
            sandbox.remove()

    return run


def bare_docker(engine: Engine) -> Callable[[], None]:
    """The SDK alone: create, start, wait, remove; no network, like the trial it is compared with."""
    client = engine.client  # type: ignore[attr-defined]
    image = engine.resolve_image(None).id
    host = client.create_host_config(network_mode="none")

    def run() -> None:
        made = client.create_container(image, ["true"], host_config=host)["Id"]
        client.start(made)
        assert client.wait(made)["StatusCode"] == 0
        client.remove_container(made)

    return run


def plain_bwrap() -> Callable[[], None]:
    """bwrap alone with the same namespaces over the same tree."""
    cache = ImageCache()
    tree = cache.tree(cache.bundled())
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--ro-bind", str(tree), "/", "--proc", "/proc",
               "--dev", "/dev", "--", "true"]  # fmt: skip
    return lambda: subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin"}) and None


def measured(works: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Seconds per work and round; one round before is not counted."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            if number:
                times[name].append(time.perf_counter() - began)
    return times


def main(rounds: int) -> None:
    works: dict[str, Callable[[], None]] = {}
    engines: list[Engine] = []
    try:
        from labaudit.engines.docker.engine import DockerEngine

        docker = DockerEngine.connect()
        engines.append(docker)
        works["docker SDK alone"] = bare_docker(docker)
        works["docker, network none"] = trial(docker)
        works["docker, allowlist, pooled"] = trial(docker, LISTED)
        works["docker, allowlist, own proxy"] = trial(docker, NetworkSpec("allowlist_enforced", ("a.example",)))
    except EnvironmentLacks as error:
        print(f"docker is not measured: {error.what}\n")
    try:
        bubblewrap = BubblewrapEngine.detect()
        engines.append(bubblewrap)
        works["bwrap alone"] = plain_bwrap()
        works["bubblewrap, network none"] = trial(bubblewrap)
        works["bubblewrap, allowlist, pooled"] = trial(bubblewrap, LISTED)
        works["bubblewrap, allowlist, own proxy"] = trial(bubblewrap, NetworkSpec("allowlist_enforced", ("a.example",)))
    except EnvironmentLacks as error:
        print(f"bubblewrap is not measured: {error.what}\n")
    times = measured(works, rounds)
    for engine in engines:
        engine.close()
    print("| work | median ms | fastest ms | ratio of medians to the tool alone | ms above it, median | fastest |")
    print("|---|---|---|---|---|---|")
    for name, seconds in times.items():
        alone = times["docker SDK alone" if name.startswith("docker") else "bwrap alone"]
        middle, best = statistics.median(seconds) * 1e3, min(seconds) * 1e3
        floor, least = statistics.median(alone) * 1e3, min(alone) * 1e3
        above = f"{middle - floor:.1f} | {best - least:.1f}"
        print(f"| {name} | {middle:.1f} | {best:.1f} | {middle / floor:.2f} | {above} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
