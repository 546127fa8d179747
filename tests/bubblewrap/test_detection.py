"""Whether bubblewrap works here does not depend on what other sandboxes do at the moment."""

from __future__ import annotations

import pytest

from labaudit.engines.bubblewrap import engine


@pytest.mark.bubblewrap
def test_the_trial_of_bubblewrap_walks_no_mounts_that_come_and_go() -> None:
    """Bound whole, the root has the surfaces of running sandboxes below it, and bwrap fails when one goes meanwhile."""
    assert "/" not in engine._TRIAL
    assert engine.BubblewrapEngine.detect().name == "bubblewrap"
