"""Which code the record of a run names, and whether it may be run."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from equida import plugins
from equida.data.benchmarks import BENCHMARKS
from equida.errors import InputError
from equida.methods import method_code, method_parts
from equida.models.backbone import backbone_code
from equida.training.config import RunConfig


def named_code(config: RunConfig, *, method: bool = True, images: bool = True) -> dict[str, str]:
    """The code that a record names: the name, and what it is used as.

    Args:
        method: whether the method will be used.
        images: whether features of images will be computed as for the run.
    """
    names = {part: "method" for part in method_parts(config.method) if method}
    names[config.backbone] = "backbone"
    if images and config.feature_origin is not None:
        names[config.feature_origin.backbone] = "backbone"
    return {name: kind for name, kind in names.items() if plugins.is_code(name)}


def with_plugins(config: RunConfig) -> RunConfig:
    """The config with a record of the code that is not equida's own, which is imported for it."""
    found = method_code(config.method)
    origin = config.feature_origin
    names = dict.fromkeys([config.backbone, origin.backbone if origin else ""])
    for name in names:
        # The features of a file may have been made by code that nobody has named here.
        if name and plugins.is_permitted(name):
            found += backbone_code(name)
    if (offer := BENCHMARKS.offers.get(config.benchmark or "")) is not None:
        found.append(plugins.plugin("data set", offer.name, offer.module))
    if (offer := plugins.offers("equida.validators").get(config.recipe.keep)) is not None:
        found.append(plugins.plugin("validator", offer.name, offer.module))
    return dataclasses.replace(config, plugins=tuple(found))


def settle_trust(file: Path, code: dict[str, str], trust: bool, say: Callable[[str], None]) -> None:
    """Permit the code that a file names where its reader trusts it, and say what will be run.

    Args:
        file: what names the code.
        code: what `named_code` found there.

    Raises:
        InputError: the file is not trusted, and names code that no flag and no argument has named.
    """
    if not trust:
        for name, kind in code.items():
            if not plugins.is_permitted(name):
                raise InputError(
                    f"{file} names the {kind} {name!r}, which would run {plugins.what_runs(name)};"
                    " it is not run unless you trust whoever made the file and say so: --trust (in"
                    " Python, trust=True)"
                )
        return
    for name, kind in code.items():
        if not plugins.is_permitted(name):
            say(f"trusting {file}: {kind} {name!r} runs {plugins.what_runs(name)}")
    plugins.permit(*code)
