"""Images of the docker engine: by name, id and archive; what is not there is never pulled."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from labaudit.engines.docker.engine import DockerEngine
from labaudit.engines.images.cache import ImageCache
from labaudit.errors import BadInput, EnvironmentLacks
from tests.engine_contract import spec_for
from tests.unit.engines.test_image_archive import docker_save, layer

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("docker")]


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerEngine]:
    with DockerEngine.connect() as made:
        yield made


def test_the_engine_has_the_bundled_image_under_the_id_that_the_archive_says(engine: DockerEngine) -> None:
    image = engine.resolve_image(None)
    assert engine.client.inspect_image(image.id)["Id"] == image.id == ImageCache().bundled().image.id
    assert engine.resolve_image(image.id).id == image.id


def test_an_archive_is_loaded_and_runs_under_its_own_id(
    engine: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABAUDIT_CACHE_DIR", str(tmp_path / "cache"))
    path = docker_save(tmp_path / "image.tar", layer(("no-shell-here", "file", "x")))
    with DockerEngine.connect() as other:
        image = other.resolve_image(str(path))
        try:
            assert image.source == "archive"
            assert other.client.inspect_image(image.id)["Id"] == image.id
            # B: an image without a shell cannot report what is in force, so it is refused with the reason
            sandbox = other.open(spec_for(engine, "/no-shell-here", image=image.id))
            with pytest.raises(EnvironmentLacks, match="no /bin/sh"):
                sandbox.start()
            sandbox.remove()
        finally:
            other.client.remove_image(image.id, force=True)


def test_an_image_that_is_not_there_is_not_pulled(engine: DockerEngine) -> None:
    with pytest.raises(EnvironmentLacks) as caught:
        engine.resolve_image("labaudit-no-such-image:1")
    assert "pulls nothing" in caught.value.hint


def test_a_file_that_is_no_archive_is_bad_input(engine: DockerEngine, tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("hello"), io.BytesIO())
    with pytest.raises(BadInput, match="docker-save"):
        engine.resolve_image(str(path))
