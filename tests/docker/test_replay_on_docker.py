"""Checkpoints, replay and fork in containers: other users, frozen processes, restored surfaces."""

from __future__ import annotations

import pytest

from tests.relive_contract import ReliveContract

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("docker")]


class TestOnDocker(ReliveContract):
    engine = "docker"
