"""Settings that would change nothing on the given data."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from equida.data import Task
from equida.data.feature_file import FeatureOrigin
from equida.errors import InputError
from equida.training.build import row_shape


class AskedSettings(Protocol):
    """What every request has that images alone may need, whether for one run or for many."""

    @property
    def backbone(self) -> str | None: ...
    @property
    def weights(self) -> str | None: ...
    @property
    def features(self) -> bool | None: ...
    @property
    def recipe_params(self) -> Mapping[str, Any]: ...
    @property
    def cache(self) -> bool: ...


def check_effect(
    asked: AskedSettings,
    task: Task,
    origin: FeatureOrigin | None,
    *,
    on_features: bool = False,
    say: Callable[[str], None],
) -> None:
    """Refuse settings for images that would have no effect on these data.

    For settings that only change how fast something is, a remark says so instead.

    Args:
        asked: what the user has asked for.
        task: the opened data.
        origin: the network that computed the rows, where that is known; a run on such rows labels
            images, to which weights matter.
        on_features: whether the run is on features that are computed from these data.
        say: called with a remark.

    Raises:
        InputError: one of them would change nothing.
    """
    shape = (0,) if on_features else row_shape(task.target)
    if not (asked.cache or on_features):
        say(f"--no-cache has no effect: no features are computed for {task.name}")
    if shape is None:
        return
    held = "features that are computed once" if on_features else "rows, not image files"
    refused = {"--ten-crop": asked.recipe_params.get("ten_crop")}
    if not on_features:
        refused["--features"] = asked.features
    if len(shape) == 1:
        refused["--freeze"] = asked.recipe_params.get("freeze")
    if len(shape) == 1 and not on_features:
        refused["--backbone"] = asked.backbone if asked.backbone != "none" else None
        refused["--weights"] = asked.weights if origin is None else None
    for flag, given in refused.items():
        if given:
            raise InputError(
                f"{flag} has no effect: the data of {task.name} are {held}; leave it out"
            )
    idle = {"--workers": asked.recipe_params.get("workers")}
    if len(shape) == 1:
        idle["--channels-last"] = asked.recipe_params.get("channels_last")
    for flag, given in idle.items():
        if given:
            say(f"{flag} has no effect: the data of {task.name} are {held}")
