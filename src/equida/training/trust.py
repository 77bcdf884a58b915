"""Which code the record of a run names, and whether it may be run."""

from collections.abc import Callable
from pathlib import Path

from equida import plugins
from equida.errors import InputError
from equida.training.config import RunConfig


def named_code(config: RunConfig, *, method: bool = True, images: bool = True) -> dict[str, str]:
    """The code that a record names: the name, and what it is used as.

    Args:
        config: the record.
        method: whether the method will be used.
        images: whether features of images will be computed as for the run.
    """
    names = {part: "method" for part in config.method.split("+") if method}
    names[config.backbone] = "backbone"
    if images and config.feature_origin is not None:
        names[config.feature_origin.backbone] = "backbone"
    return {name: kind for name, kind in names.items() if plugins.is_code(name)}


def settle_trust(file: Path, code: dict[str, str], trust: bool, say: Callable[[str], None]) -> None:
    """Permit the code that a file names where its reader trusts it, and say what will be run.

    Args:
        file: what names the code.
        code: what `named_code` found there.
        trust: whether the reader trusts whoever made the file.
        say: told of each thing that will be run.

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
