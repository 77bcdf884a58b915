"""A task: a labelled source, a target, and one class list for both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from equida.data.classes import check_class_names, class_key
from equida.data.domain import ArrayDomain, Domain, ImageDomain
from equida.errors import InputError, enumerated, printable

ClassRule = Literal["source", "shared"]
"""The classes of a task: all of the source's, or those of which both domains have samples."""


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
        test: samples of the target that the result is judged by, where those are others.
        left_out: in one line, what was left out because the domains have different classes.

    >>> x = np.zeros((2, 4))
    >>> source = ArrayDomain(x, name="shop", classes=("mug", "pen"), labels=np.array([0, 0]))
    >>> make_task(source, ArrayDomain(x, name="desk")).absent_classes()
    ['pen']
    """

    name: str
    source: Domain
    target: Domain
    classes: tuple[str, ...]
    respelled: tuple[tuple[str, str], ...] = ()
    test: Domain | None = None
    left_out: str = ""

    @property
    def judged(self) -> Domain:
        """The samples that evaluations are made on."""
        return self.target if self.test is None else self.test

    def absent_classes(self) -> list[str]:
        """The classes without a sample in the source."""
        if self.source.labels is None:
            return []
        present = set(np.unique(self.source.labels).tolist())
        return [name for number, name in enumerate(self.classes) if number not in present]


def make_task(
    source: Domain,
    target: Domain,
    *,
    name: str | None = None,
    class_rule: ClassRule = "source",
    test: Domain | None = None,
) -> Task:
    """The task of adapting from `source` to `target`.

    Classes are matched by name, without regard to case, so the target's class list may be in
    another order. Samples of classes that the task does not have are left out, and `Task.left_out`
    says so. The target may be unlabelled; then the classes are the source's.

    Args:
        source: a labelled domain.
        target: a domain with samples of the same kind and size.
        name: the task's name; by default both domains' names with a "2" in between.
        class_rule: "source" keeps the source's classes, "shared" those that have samples in both
            or, where the target is unlabelled, in the source.
        test: samples that the result is judged by instead of the target's.

    >>> from equida.data import array_domain
    >>> shop = array_domain(np.zeros((3, 3)), ["bike", "mug", "pen"], name="shop")
    >>> desk = array_domain(np.zeros((3, 3)), ["Mug", "Pen", "cat"], name="desk")
    >>> make_task(shop, desk).target.labels
    array([1, 2])
    >>> make_task(shop, desk, class_rule="shared").classes
    ('mug', 'pen')
    """
    if source.labels is None:
        raise InputError(
            f"{source.named_as('source')} is unlabelled; expected class folders or labels to"
            " learn from"
        )
    if len(source.classes) < 2:
        found = f"one class, {source.classes[0]!r}" if source.classes else "no class names"
        raise InputError(f"{source.named_as('source')} has {found}; expected at least two classes")
    targets = [target] if test is None else [target, test]
    for domain in (source, *targets):
        check_class_names(domain.classes, domain.name)
        _check_labels(domain)
        if len(domain) == 0:
            raise InputError(f"{domain.name} has no samples; expected at least one")
        if _sample_shape(source) != _sample_shape(domain):
            raise InputError(
                f"{source.named_as('source')} holds {_sample_shape(source)} and"
                f" {domain.named_as('target')} {_sample_shape(domain)}; expected samples of one"
                " kind and size"
            )
        check_columns(columns_of(domain), columns_of(source), domain.named_as("target"))
    classes = _task_classes(source, targets, class_rule)
    kept = [of_classes(domain, classes) for domain in (source, *targets)]
    return Task(
        printable(name or f"{source.name}2{target.name}"),
        kept[0],
        kept[1],
        classes,
        _respelled(target, classes),
        None if test is None else kept[2],
        _left_out((source, *targets), kept, classes, class_rule),
    )


def check_columns(columns: Sequence[str], expected: Sequence[str], origin: str) -> None:
    """Refuse features with other names, or in another order, than those expected.

    Args:
        columns: the names of the features; without names there is nothing to compare.
        expected: the same of what they must be like.
        origin: whose features they are, for the error message.

    >>> check_columns(["height", "width"], ["height", "width"], "target")
    """
    # The columns of an array are numbered, which must agree with numbers in another order.
    numbers = [str(number) for number in range(len(columns or expected))]
    if sorted(columns or expected) == sorted(numbers):
        columns, expected = columns or numbers, expected or numbers
    if not columns or not expected or list(columns) == list(expected):
        return
    if sorted(columns) == sorted(expected):
        raise InputError(
            f"{origin} has the columns {_listed(columns)}; expected the same in the order"
            f" {_listed(expected)}"
        )
    missing = [name for name in expected if name not in columns]
    others = [name for name in columns if name not in expected]
    if not missing and not others:  # some name occurs several times
        raise InputError(
            f"{origin} has the columns {_listed(columns)}; expected {_listed(expected)}"
        )
    raise InputError(
        f"{origin} has other columns than expected: "
        + "; ".join(
            f"{what} {_listed(names)}"
            for what, names in (("it lacks", missing), ("it has besides", others))
            if names
        )
    )


def _listed(names: Sequence[str], most: int = 5) -> str:
    some = ", ".join(map(repr, names[:most]))
    return some if len(names) <= most else f"{some}, ..."


def columns_of(domain: Domain) -> tuple[str, ...]:
    """The names of its features, where they have names."""
    return domain.columns if isinstance(domain, ArrayDomain) else ()


def _task_classes(source: Domain, targets: Sequence[Domain], rule: ClassRule) -> tuple[str, ...]:
    """The source's classes, or those of them that both sides have samples of."""
    labelled = [domain for domain in targets if domain.labels is not None]
    if not labelled:
        present = tuple(present_classes(source))
        # With fewer than two, there is nothing to tell apart: a mistake that is said elsewhere.
        return present if rule == "shared" and len(present) > 1 else source.classes
    theirs = {class_key(name) for domain in labelled for name in present_classes(domain)}
    mine = source.classes if rule == "source" else present_classes(source)
    shared = [name for name in mine if class_key(name) in theirs]
    if not shared or (len(shared) == 1 and rule == "shared"):
        raise InputError(_too_few_shared(labelled[0], source, shared))
    return source.classes if rule == "source" else tuple(shared)


def present_classes(domain: Domain) -> list[str]:
    """The classes that a labelled domain has samples of, in the order of its class list."""
    return [domain.classes[number] for number in np.flatnonzero(domain.class_counts())]


def of_classes(domain: Domain, classes: tuple[str, ...]) -> Domain:
    """The samples of these classes, labelled by them."""
    if domain.labels is None or domain.classes == classes:
        return domain.relabel(classes, domain.labels)
    numbers = {class_key(name): number for number, name in enumerate(classes)}
    order = np.array([numbers.get(class_key(name), -1) for name in domain.classes], np.int64)
    labels = order[domain.labels]
    kept = labels >= 0
    if kept.all():
        return domain.relabel(classes, labels)
    return domain.select(kept).relabel(classes, labels[kept])


def _left_out(
    given: Sequence[Domain], kept: Sequence[Domain], classes: tuple[str, ...], rule: ClassRule
) -> str:
    """What the task has not taken from its domains, in one line; "" where it has taken all."""
    known, parts = set(map(class_key, classes)), []
    for role, before, after in zip(("source", "target", "test"), given, kept, strict=False):
        if len(before) == len(after):
            continue
        gone = [name for name in present_classes(before) if class_key(name) not in known]
        named = _listed(gone, 3)
        if len(gone) > 3:
            named = f"{len(gone)} classes ({named})"
        parts.append(
            f"{len(before) - len(after):,} of {len(before):,} samples of {before.named_as(role)},"
            f" those of {named}"
        )
    every, present = given[0].classes, set(map(class_key, present_classes(given[0])))
    if rule == "shared" and len(classes) < len(every) and len(present) < len(every):
        empty = next(name for name in every if class_key(name) not in present)
        parts.append(
            f"{len(every) - len(present)} of {len(every)} classes without a sample in"
            f" {given[0].named_as('source')}, such as {empty!r}"
        )
    if not parts:
        return ""
    which = "the source's"
    if rule == "shared" and all(domain.labels is None for domain in given[1:]):
        which = "those that the source has samples of (--classes source keeps all)"
    elif rule == "shared":
        which = "those that both domains have by their labels (--classes source keeps the source's)"
    return f"{len(classes)} classes, {which}; left out: {'; '.join(parts)}"


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


def _respelled(target: Domain, classes: Sequence[str]) -> tuple[tuple[str, str], ...]:
    if target.labels is None:
        return ()
    known = {class_key(name): name for name in classes}
    pairs = [(name, known.get(class_key(name), name)) for name in present_classes(target)]
    return tuple(pair for pair in pairs if pair[0] != pair[1])


def _sample_shape(domain: Domain) -> str:
    if isinstance(domain, ArrayDomain):
        shape = domain.values.shape
        return f"rows of shape {tuple(shape[2:] if len(shape) == 3 else shape[1:])}"
    return "images"


def _too_few_shared(target: Domain, source: Domain, shared: Sequence[str]) -> str:
    found = present_classes(target)
    named = enumerated([*map(repr, found)], 5)
    hint = "rename its classes, or use it unlabelled with --ignore-target-labels"
    if isinstance(target, ImageDomain) and len(target.classes) == len(found) == 1 and not shared:
        hint = f"if it is unlabelled, give the images' own folder, {target.root / found[0]}"
    elif shared:
        hint = "expected at least two, or --classes source to keep the source's"
    return (
        f"{target.named_as('target')} has {len(found)} classes ({named}), and {len(shared)} of them"
        f" are classes of {source.named_as('source')}; {hint} (the source has"
        f" {len(source.classes)}, such as"
        f" {source.classes[0]!r})"
    )
