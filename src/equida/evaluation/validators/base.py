"""What a label-free validator is: a score of target predictions that declares what it needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from equida.errors import InputError
from equida.evaluation.predictions import DomainPredictions
from equida.plugins import offers, sound_offers
from equida.registry import Registry

Need = Literal["source", "features", "inputs", "cluster_labels", "network"]
Score = Callable[[DomainPredictions, DomainPredictions | None], float]
S = TypeVar("S", bound=Score)

WORDS: dict[str, str] = {
    "source": "predictions for the source, with its labels",
    "features": "the network's features",
    "inputs": "the rows that the network was given",
    "cluster_labels": "cluster labels of the target",
    "network": "the network itself",
}


@dataclass(frozen=True)
class Validator:
    """A label-free score of target predictions; higher is better."""

    name: str
    title: str
    meaning: str
    """Which step it picks, as the end of a sentence."""
    function: Score
    needs: tuple[Need, ...] = ()
    """What it looks at besides the log-probabilities of the target. Features and inputs are those
    of both domains where it needs the source, too."""
    costly: bool = False
    """Whether it is computed only where it is asked for by name, not at each evaluation."""

    def score(self, target: DomainPredictions, source: DomainPredictions | None = None) -> float:
        """The score of a network; labels of the target are taken away before it is computed.

        Raises:
            InputError: the predictions lack something that the validator needs.
        """
        lacking = self.lacking(target, source)
        if lacking:
            raise InputError(
                f"validator {self.name!r} needs {WORDS[lacking[0]]}; choose another one"
            )
        seen = source if "source" in self.needs else None
        return float(self.function(target.without_labels, seen))

    def lacking(
        self, target: DomainPredictions, source: DomainPredictions | None = None
    ) -> list[Need]:
        """What it needs and is not there."""
        domains = [target, source] if "source" in self.needs and source is not None else [target]
        there = {
            "source": source is not None and source.confusion is not None,
            "features": all(domain.features is not None for domain in domains),
            "inputs": all(domain.inputs is not None for domain in domains),
            "cluster_labels": target.cluster_labels is not None,
            "network": target.network is not None,
        }
        return [need for need in self.needs if not there[need]]


VALIDATORS: Registry[Validator] = Registry("validator")
DEFAULT_VALIDATOR = "knn_balance"
"""What chooses between settings and methods where nobody says otherwise: docs/validators.md has the
table that supports it."""


def validator(
    name: str, title: str, meaning: str, *, needs: Sequence[Need] = (), costly: bool = False
) -> Callable[[S], S]:
    """A decorator that makes a score of predictions known by `name`.

    The arguments are those of `Validator`. The function is given the predictions for the target,
    without labels, and those for the source, which are None unless it needs them.
    """
    unknown = sorted(set(needs) - set(get_args(Need)))
    if unknown:
        known = ", ".join(get_args(Need))
        raise ValueError(f"validator {name!r} needs {unknown[0]!r}; it may need {known}")

    def add(function: S) -> S:
        VALIDATORS.add(name, Validator(name, title, meaning, function, tuple(needs), costly))
        return function

    return add


def own_validators() -> dict[str, str]:
    """The validators that neither equida nor an installed package brings: their modules by name."""
    offered = offers("equida.validators")
    modules = {name: VALIDATORS[name].function.__module__ for name in VALIDATORS}
    return {
        name: module
        for name, module in modules.items()
        if name not in offered and module.partition(".")[0] != "equida"
    }


def add_plugins() -> None:
    """Add the validators of installed plug-ins: functions under `@validator`, or `Validator`s.

    One that cannot be imported is warned of in one line and left out.
    """
    for name, found in sound_offers("validator", "equida.validators"):
        if isinstance(found, Validator) and name not in VALIDATORS:
            VALIDATORS.add(name, found)
