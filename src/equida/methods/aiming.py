"""What the methods with equity share: the class shares that they aim at."""

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import torch
from torch import Tensor, nn

from equida.class_shares import is_shares, shares_text, shares_title
from equida.errors import InputError
from equida.methods.base import Method, Range

PRIORS = ("uniform", "source", "estimate", "oracle")
"""The words for class shares: equal ones, the source's, an estimate, and the target's true ones."""
PRIOR_FIELDS = ("prior", "prior_strength")
"""What every such method has as a field; in a composition all parts can be given it at once."""
MARKED_ORACLE = "oracle (uses target labels)"


def prior_field() -> Any:
    """A dataclass field for the class shares to aim at: a word, or shares in their one spelling."""
    meaning = (
        "Class shares to aim at: uniform, source (those of its labels), estimate (of the target,"
        " without its labels), a share for each class, a file, or oracle (uses target labels)."
    )
    return field(default="uniform", metadata={"reader": _read_prior, "meaning": meaning})


def strength_field(default: float) -> Any:
    """A dataclass field for how much of the prior counts."""
    meaning = "How far to move from uniform shares to `prior`; an estimate is used as it is."
    bounds = Range(low=0.0, high=1.0, minimum=0.0, maximum=1.0)
    return field(default=default, metadata={"bounds": bounds, "meaning": meaning})


def _read_prior(given: Any, name: str) -> str:
    return given if isinstance(given, str) and given in PRIORS else shares_text(given, name)


def prior_title(prior: str) -> str:
    """A prior as titles name it, marked where it uses target labels."""
    if is_shares(prior):
        return shares_title(prior)
    return MARKED_ORACLE if prior == "oracle" else prior


def check_prior(part: str, config: Any) -> None:
    """Raise InputError where a method without pressure towards class sizes is given some."""
    if getattr(config, "prior", "uniform") != "uniform" and getattr(config, "r", None) == 0.0:
        raise InputError(
            f"{part}.prior is {prior_title(config.prior)!r}, but r is 0, where the sizes of classes"
            " do not count; leave prior out, or choose r above 0"
        )


class AimingMethod(Method):
    """A method whose loss moves the target's classes towards given sizes; equal ones by default.

    Its config has the fields `prior` and `prior_strength`. What they ask for becomes known with the
    data: `aim_at` is called once before training.
    """

    shares: Tensor | None

    def __init__(self, config: Any, features: int, classes: int, classifier: nn.Module) -> None:
        super().__init__(config, features, classes, classifier)
        # The run's record holds them, so that weights fit methods with and without shares.
        self.register_buffer("shares", None, persistent=False)

    def aim_at(self, shares: Sequence[float]) -> None:
        """Aim at these shares of the classes from now on."""
        self.shares = torch.tensor(shares)
