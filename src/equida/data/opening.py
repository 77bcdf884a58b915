"""A domain from whatever a path leads to."""

from collections.abc import Sequence
from pathlib import Path

from equida.data.domain import Domain
from equida.data.feature_file import SUFFIXES, feature_domain
from equida.data.folders import existing, image_folder
from equida.data.images import is_image_name
from equida.data.lists import image_list
from equida.errors import InputError


def open_domain(
    path: str | Path,
    *,
    domain: str | None = None,
    classes: Sequence[str] | None = None,
    root: str | Path | None = None,
) -> Domain:
    """The domain that `path` holds: a folder, an image list (.txt) or a feature file.

    Args:
        path: what to open.
        domain: which one, where the file holds several domains or the folder a folder for each.
        classes: the class list that labels are held against.
        root: the folder of the images that a list names.
    """
    found = existing(path)
    if found.is_dir():
        return image_folder(existing(found / domain) if domain else found, classes=classes)
    if found.suffix in SUFFIXES:
        return feature_domain(found, domain=domain, classes=classes)
    if found.suffix in (".txt", ".list", ".lst"):
        return image_list(found, root=root, classes=classes)
    kind = "one image; give its folder" if is_image_name(found.name) else "not known"
    raise InputError(
        f"{found} is {kind}; expected a folder, an image list (.txt) or a feature file"
        f" ({', '.join(SUFFIXES)})"
    )
