"""Checkpoints, replay and fork in namespaces: other users, frozen processes, restored surfaces, the parent's image."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from labaudit.engines.images.archive import read_archive, write_archive
from labaudit.engines.images.cache import ENV, ImageCache
from labaudit.errors import EnvironmentLacks, LabauditError
from labaudit.store.lab_folder import LabFolder
from tests.experiments import only_trial, run, write_experiment
from tests.relive_contract import ReliveContract, fingerprint, replay

pytestmark = pytest.mark.bubblewrap


class TestOnBubblewrap(ReliveContract):
    engine = "bubblewrap"


@pytest.mark.acceptance
def test_an_image_that_is_gone_or_has_another_id_is_an_error_and_the_parent_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled, archive = ImageCache().bundled(), folder / "image.tar"
    machine = str(read_archive(bundled.archive).config["architecture"])
    write_archive(ImageCache().tree(bundled), archive, tag="own:1", env=ENV, labels={"own": "1"}, machine=machine)
    monkeypatch.setenv("LABAUDIT_CACHE_DIR", str(folder / "cache"))
    tasks = [{"id": "t", "name": "x", "expected": "Hello x"}]
    write_experiment(folder, variants=(), tasks=tasks, runtime={"engine": "bubblewrap", "image": str(archive)})
    parent = run(folder).run
    trial, record = only_trial(parent)
    assert record.outcome == "success"
    lab, before = LabFolder(folder / ".lab"), fingerprint(parent)
    walked = (lab, parent, trial)
    shutil.rmtree(folder / "cache")
    archive.unlink()
    with pytest.raises(LabauditError, match=r"image\.tar") as caught:
        replay(walked)
    assert caught.value.exit_code in (2, 4)
    shutil.copyfile(bundled.archive, archive)
    monkeypatch.chdir(folder)  # an archive is recorded by its path below the experiment's folder
    with pytest.raises(EnvironmentLacks, match=f"is here as {bundled.image.id} only"):
        replay(walked)
    assert (fingerprint(parent), lab.run_ids()) == (before, [parent.run_id])
