"""Settings that would change nothing on the given data."""

from collections.abc import Callable, Mapping
from typing import Any

from equida.data import Task
from equida.data.feature_file import FeatureOrigin
from equida.errors import InputError
from equida.training.build import row_shape


def check_effect(
    task: Task,
    *,
    backbone: str | None,
    weights: str | None,
    features: bool,
    origin: FeatureOrigin | None,
    recipe_params: Mapping[str, Any],
    on_features: bool = False,
    cache: bool = True,
    say: Callable[[str], None],
) -> None:
    """Refuse settings for images that would have no effect on these data.

    For settings that only change how fast something is, a remark says so instead.

    Args:
        task: the opened data.
        backbone: what the user has asked for, or None.
        weights: the same; they matter to rows of known origin, as a run on them labels images.
        features: whether features are to be computed.
        origin: the network that computed the rows, where that is known.
        recipe_params: the fields of the recipe that the user has set.
        on_features: whether the run is on features that are computed from these data.
        cache: whether the store of features may be used.
        say: called with a remark.

    Raises:
        InputError: one of them would change nothing.
    """
    shape = (0,) if on_features else row_shape(task.target)
    if not (cache or on_features):
        say(f"--no-cache has no effect: no features are computed for {task.name}")
    if shape is None:
        return
    held = "features that are computed once" if on_features else "rows, not image files"
    refused = {"--ten-crop": recipe_params.get("ten_crop")}
    if not on_features:
        refused["--features"] = features
    if len(shape) == 1:
        refused["--freeze"] = recipe_params.get("freeze")
    if len(shape) == 1 and not on_features:
        refused["--backbone"] = backbone if backbone != "none" else None
        refused["--weights"] = weights if origin is None else None
    for flag, given in refused.items():
        if given:
            raise InputError(
                f"{flag} has no effect: the data of {task.name} are {held}; leave it out"
            )
    idle = [("--workers", recipe_params.get("workers"))]
    idle += [("--channels-last", recipe_params.get("channels_last"))] if len(shape) == 1 else []
    for flag, given in idle:
        if given:
            say(f"{flag} has no effect: the data of {task.name} are {held}")
