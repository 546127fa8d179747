"""What a harness finds in its environment beyond the image's own: a home, a place for scratch files, the proxy."""

from __future__ import annotations

from labaudit.engines.spec import INSIDE, PROXY_PORT, SandboxSpec
from labaudit.network.program import proxy_environment


def harness_environment(spec: SandboxSpec) -> dict[str, str]:
    """Defaults, then the spec's own words. The proxy variables are a convenience: no claim rests on them."""
    proxy = proxy_environment(PROXY_PORT) if spec.network.mode == "allowlist_enforced" else {}
    return {"HOME": INSIDE.workspace, "TMPDIR": INSIDE.tmp, **proxy, **spec.env}
