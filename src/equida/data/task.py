"""A task: a labelled source, a target, and one class list for both."""

from dataclasses import dataclass

import numpy as np

from equida.data.classes import check_class_names, class_key
from equida.data.domain import ArrayDomain, Domain, ImageDomain
from equida.errors import InputError, printable


@dataclass(frozen=True)
class Task:
    """A source to learn from and a target to be judged on, under one class list.

    Attributes:
        name: what the task is called in tables, such as "A2W".
        source: the labelled domain.
        target: the domain to adapt to; its labels, if any, are only used to judge the result.
        classes: class names; the index is the label in both domains.
        respelled: class names of the target that the source writes otherwise (in case, or in how
            accents are stored), each with the source's spelling; they are taken for the same class.
    """

    name: str
    source: Domain
    target: Domain
    classes: tuple[str, ...]
    respelled: tuple[tuple[str, str], ...] = ()

    def absent_classes(self) -> list[str]:
        """The classes without a sample in the source."""
        if self.source.labels is None:
            return []
        present = set(np.unique(self.source.labels).tolist())
        return [name for number, name in enumerate(self.classes) if number not in present]


def make_task(source: Domain, target: Domain, *, name: str | None = None) -> Task:
    """The task of adapting from `source` to `target`; its classes are the source's.

    The target's labels are looked up by class name, without regard to case, so its class list may
    be in another order or hold only some of the classes. The target may be unlabelled.

    Args:
        source: a labelled domain.
        target: a domain with samples of the same kind and size.
        name: the task's name; by default both domains' names with a "2" in between.

    >>> from equida.data import array_domain
    >>> shop = array_domain(np.zeros((2, 3)), ["bike", "mug"], name="shop")
    >>> desk = array_domain(np.zeros((1, 3)), ["Mug"], name="desk")
    >>> make_task(shop, desk).target.labels
    array([1])
    """
    if source.labels is None:
        raise InputError(
            f"source {source.name} is unlabelled; expected class folders or labels to learn from"
        )
    if len(source.classes) < 2:
        raise InputError(
            f"source {source.name} has one class, {source.classes[0]!r}; expected at least two, to"
            " be told apart"
        )
    for domain in (source, target):
        check_class_names(domain.classes, domain.name)
        _check_labels(domain)
    if len(source) == 0 or len(target) == 0:
        empty = source if len(source) == 0 else target
        raise InputError(f"{empty.name} has no samples; expected at least one")
    if _sample_shape(source) != _sample_shape(target):
        raise InputError(
            f"source {source.name} holds {_sample_shape(source)} and target {target.name}"
            f" {_sample_shape(target)}; expected samples of one kind and size"
        )
    return Task(
        printable(name or f"{source.name}2{target.name}"),
        source,
        _aligned(target, source),
        source.classes,
        _respelled(target, source),
    )


def _check_labels(domain: Domain) -> None:
    """Refuse labels that somebody has put into a domain and that do not fit it."""
    labels = domain.labels
    if labels is None:
        return
    if len(labels) != len(domain):
        raise InputError(f"{domain.name}: {len(labels)} labels for {len(domain)} samples")
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(domain.classes):
        raise InputError(
            f"{domain.name}: labels from {labels.min()} to {labels.max()}; expected 0 to"
            f" {len(domain.classes) - 1}, indices into its classes"
        )


def _respelled(target: Domain, source: Domain) -> tuple[tuple[str, str], ...]:
    if target.labels is None:
        return ()
    known = {class_key(name): name for name in source.classes}
    found = [target.classes[label] for label in np.unique(target.labels)]
    return tuple((name, known[class_key(name)]) for name in found if known[class_key(name)] != name)


def _sample_shape(domain: Domain) -> str:
    if isinstance(domain, ArrayDomain):
        shape = domain.values.shape
        return f"rows of shape {tuple(shape[2:] if len(shape) == 3 else shape[1:])}"
    return "images"


def _aligned(target: Domain, source: Domain) -> Domain:
    if target.labels is None:
        return target.relabel(source.classes, None)
    numbers = {class_key(known): number for number, known in enumerate(source.classes)}
    present = np.unique(target.labels)
    unknown = [
        target.classes[label]
        for label in present
        if class_key(target.classes[label]) not in numbers
    ]
    if unknown:
        raise InputError(_unknown(target, source, unknown))
    order = np.full(len(target.classes), -1, np.int64)
    for label in present:
        order[label] = numbers[class_key(target.classes[label])]
    return target.relabel(source.classes, order[target.labels])


def _unknown(target: Domain, source: Domain, unknown: list[str]) -> str:
    named = ", ".join(map(repr, unknown[:5])) + (" ..." if len(unknown) > 5 else "")
    hint = "rename or remove them, or use it unlabelled with --ignore-target-labels"
    if isinstance(target, ImageDomain) and len(target.classes) == len(unknown) == 1:
        hint = f"if it is unlabelled, give the images' own folder, {target.root / unknown[0]}"
    return (
        f"target {target.name} has {len(unknown)} classes that source {source.name} lacks: {named};"
        f" {hint} (the source has {len(source.classes)}, such as {source.classes[0]!r})"
    )
