"""What the inventory tells about a trial's proxy becomes caps of the isolation grade."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labaudit.core.canonical import canonical_bytes
from labaudit.evidence.observe_files import observe_inventory, observe_network
from labaudit.grading.isolation import _i15_a_shared_proxy_counts, _i16_a_dead_proxy_may_have_kept_lines_to_itself
from labaudit.store.run_folder import TrialFolder
from tests.make_run import make_run


class Seen:
    """The one part of an observation that these rules read."""

    def __init__(self, network: object) -> None:
        self.network = network


def caps(network: object) -> list[tuple[str, str]]:
    rules = (_i15_a_shared_proxy_counts, _i16_a_dead_proxy_may_have_kept_lines_to_itself)
    return [(cap.rule, cap.to) for rule in rules for cap in rule(Seen(network))]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A good inventory, taken from a whole run."""
    made = make_run(tmp_path_factory.mktemp("lab"), sign=False)
    value: dict[str, Any] = json.loads(next(made.run.trial_folders()).state_inventory.read_bytes())
    return value


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"pooled": False, "proxy_alive_at_end": True}, []),
        ({"pooled": False, "proxy_alive_at_end": None}, []),
        ({"pooled": True, "proxy_alive_at_end": True}, [("I15", "bounded")]),
        ({"pooled": False, "proxy_alive_at_end": False}, [("I16", "bounded")]),
        ({"pooled": "yes"}, []),
        ("nonsense", []),
        (None, []),
    ],
)
def test_a_shared_or_dead_proxy_is_a_cap(
    inventory: dict[str, Any], tmp_path: Path, told: Any, expected: list[tuple[str, str]]
) -> None:
    trial = TrialFolder(tmp_path)
    trial.state_inventory.write_bytes(canonical_bytes({**inventory, "ext": {"network": told}}))
    read = observe_inventory(trial)
    assert caps(observe_network(trial, read)) == expected  # type: ignore[arg-type]
