"""Images of a Docker-compatible engine: a name, an id, an archive or the bundled one, resolved to what will run."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import docker
import docker.errors

from labaudit.engines.docker.api import Facts, calling
from labaudit.engines.images.cache import BUNDLED_NAMES, CachedImage, ImageCache
from labaudit.engines.protocol import ResolvedImage
from labaudit.errors import EnvironmentLacks


class EngineImages:
    """Resolves references, loading archives where the engine does not have them yet."""

    def __init__(self, client: docker.APIClient, cache: ImageCache | None = None) -> None:
        self._client, self._cache = client, cache or ImageCache()
        self._bundled: ResolvedImage | None = None
        self._lock = threading.Lock()

    def resolve(self, reference: str | None) -> ResolvedImage:
        """The image by id. EnvironmentLacks where it is not there: nothing is ever pulled."""
        if reference is None or reference in BUNDLED_NAMES:
            with self._lock:
                if self._bundled is None:
                    self._bundled = self._loaded(self._cache.bundled())
                return self._bundled
        if Path(reference).is_file():
            return self._loaded(self._cache.from_archive(Path(reference)))
        found = self._find(reference)
        if found is not None:
            return ResolvedImage(found["Id"], reference, "engine", env=_env(found))
        if (cached := self._cache.find(reference)) is not None:
            return self._loaded(cached)
        raise EnvironmentLacks(
            f'there is no image "{reference}" in the engine',
            where="runtime.image",
            hint="labaudit pulls nothing: `docker pull` or `docker load` it first, or name a docker-save archive",
        )

    def archive(self, image_id: str, folder: Path) -> Path | None:
        """The image as a docker-save archive; written into `folder` where the cache does not have it."""
        if (cached := self._cache.find(image_id)) is not None:
            return cached.archive
        if self._find(image_id) is None:
            return None
        target = folder / "image.tar"
        with calling("save the image"), target.open("wb") as stream:
            for chunk in self._client.get_image(image_id):
                stream.write(chunk)
        return target

    def _loaded(self, cached: CachedImage) -> ResolvedImage:
        if self._find(cached.image.id) is None:
            with calling("load the image"), cached.archive.open("rb") as archive:
                said = [str(line.get("stream", "")) for line in self._client.load_image(archive) or ()]  # type: ignore[no-untyped-call]
            if self._find(cached.image.id) is None:
                return self._other_id(cached, " ".join(said))
        return cached.image

    def _other_id(self, cached: CachedImage, said: str) -> ResolvedImage:
        """Some engines name images by another digest; then theirs is what runs, and that is noted."""
        found = self._find(cached.image.name)
        if found is None:
            raise EnvironmentLacks(f"the engine loaded the archive but does not know the image: {said}", where="docker")
        note = f"the engine names this image {found['Id']}; its config digest is {cached.image.id}"
        return dataclasses.replace(cached.image, id=found["Id"], notes=(*cached.image.notes, note))

    def _find(self, reference: str) -> Facts | None:
        try:
            with calling("look for an image"):
                found: Facts = self._client.inspect_image(reference)  # type: ignore[no-untyped-call]
                return found
        except EnvironmentLacks as error:
            if isinstance(error.__cause__, docker.errors.NotFound):
                return None
            raise


def _env(found: Facts) -> dict[str, str]:
    pairs = (found.get("Config") or {}).get("Env") or []
    return dict(str(pair).split("=", 1) for pair in pairs if "=" in str(pair))
