"""Whether data are still the data that a run was on."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from equida.data.images import is_image_name
from equida.models.weights import file_sha256
from equida.training.config import TaskSource
from equida.training.tasks import split_path


def data_sha256(where: TaskSource) -> str:
    """A digest of what a task is on; "" for data that come inside a package.

    Of files (features, lists) their content; of folders the name and size of each image, as reading
    all of them would take longer than many a run, and other files (runs, notes) do not matter.
    """
    paths = [where.data] if where.benchmark else [where.source, where.target]
    found = [_of(split_path(path)[0]) for path in paths if path]
    return hashlib.sha256("".join(found).encode()).hexdigest() if found else ""


def _of(path: Path) -> str:
    if path.is_file():
        return file_sha256(path)
    digest = hashlib.sha256()
    for name, size in _files(path):
        digest.update(f"{name}\0{size}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _files(root: Path) -> Iterator[tuple[str, int]]:
    """Every image below a folder by its path from there, in order, with its size."""
    for folder, folders, names in os.walk(root, followlinks=True):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            if is_image_name(name) and os.path.exists(file):
                yield os.path.relpath(file, root), os.path.getsize(file)
