"""What was observed of the network to `network.html`: modes, enforcement, self-test with controls, totals by host."""

from __future__ import annotations

from labaudit.site.pages.run_pages import RunSite

LISTED_HOSTS = 500
RESIDUAL = (
    "Egress control sees connections of the sandbox. Tools that a model provider runs on its own side, such as a web "
    "search behind an allowed model API, are invisible to it.",
    "Inside TLS to an allowed name, a different inner Host header cannot be seen.",
)


def write_network(site: RunSite) -> None:
    """`network.html` of one run."""
    tally = site.tally
    hosts = [
        {
            "host": key[0],
            "port": key[1],
            "decision": key[2],
            "rule": key[3],
            "count": n,
            "up": up,
            "down": down,
            "trials": t,
        }
        for key, (n, up, down, t) in sorted(tally.hosts.items(), key=lambda item: (-item[1][0], item[0]))
    ]
    cases = [
        {"target": key[0], "expected": key[1], "observed": key[2], "ok": key[3], "trials": count}
        for key, count in sorted(tally.self_tests.items())
    ]
    requested = (site.run.resolved.get("runtime") or {}).get("network") or {}
    site.page(
        "network.html",
        "network.html",
        requested=requested,
        modes=[
            {"requested": key[0], "effective": key[1], "enforcement": key[2], "risk": key[3], "trials": count}
            for key, count in sorted(tally.modes.items())
        ],
        performed=sorted(tally.self_test_performed.items()),
        cases=cases,
        hosts=hosts[:LISTED_HOSTS],
        host_count=len(hosts),
        allowed=sum(host["count"] for host in hosts if host["decision"] == "allow"),
        blocked=sum(host["count"] for host in hosts if host["decision"] == "block"),
        violations=tally.violations,
        violation_count=tally.violation_count,
        residual=RESIDUAL,
    )
