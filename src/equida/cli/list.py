"""`equida list methods|recipes|datasets`: what can be chosen by name."""

import dataclasses
import json
import shutil
import textwrap
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import tyro

from equida.errors import InputError
from equida.registry import Registry

if typing.TYPE_CHECKING:
    from equida.data import Benchmark
    from equida.methods import Description, Hyperparameter


@dataclass(frozen=True)
class Arguments:
    """Show what can be chosen by name: methods with idea, defaults, ranges and reference; recipes;
    data sets."""

    what: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="WHAT")]]
    """What to list: methods, recipes or datasets."""
    name: tyro.conf.Positional[Annotated[str | None, tyro.conf.arg(metavar="NAME")]] = None
    """Only this one, or these (`a+b`), with all that is known of it."""
    json: bool = False
    """Print JSON for programs instead of text for people."""


class Item(NamedTuple):
    """One thing that can be chosen: the same facts for a line, a page and a program."""

    idea: str
    facts: list[str]
    details: list[str]
    record: dict[str, Any]


class Listing(NamedTuple):
    """All things of one kind by name, and what to say below them."""

    items: Mapping[str, Item]
    footer: str


def run(arguments: Arguments) -> int:
    if arguments.what not in LISTINGS:
        known = ", ".join(LISTINGS)
        raise InputError(f"{arguments.what!r} is nothing to list; it is one of: {known}")
    items, footer = LISTINGS[arguments.what]()
    if arguments.name is not None:
        one: Registry[Item] = Registry(arguments.what.removesuffix("s"))
        for name, item in items.items():
            one.add(name, item)
        items, footer = {name: one[name] for name in arguments.name.split("+")}, ""
    if arguments.json:
        print(json.dumps({name: item.record for name, item in items.items()}, indent=2))
        return 0
    indent = 2 + max(map(len, items))
    for name, item in items.items():
        lines = [item.idea, *(item.facts if arguments.name is None else item.details)]
        print("\n".join(_wrapped(name, lines, indent)))
    if footer:
        print(f"\n{footer}")
    return 0


def _wrapped(name: str, lines: list[str], indent: int) -> list[str]:
    """The name, and beside it the lines, wrapped to the terminal."""
    width = max(shutil.get_terminal_size().columns, indent + 40)
    heads = [name.ljust(indent), *[" " * indent] * (len(lines) - 1)]
    return [
        textwrap.fill(line, width, initial_indent=head, subsequent_indent=" " * (indent + 2))
        for head, line in zip(heads, lines, strict=True)
    ]


def methods() -> Listing:
    from equida.methods import METHODS, describe

    return Listing(
        {name: _method_item(describe(name)) for name in METHODS},
        "Two methods compose with a plus sign, as in cdan+nsm. "
        "`equida list methods NAME` explains one.",
    )


def _method_item(method: "Description") -> Item:
    fields = method.hyperparameters
    facts = [", ".join(f"{field.name} {_default(field)}" for field in fields)] if fields else []
    explained = [f"{field.name} {_default(field)}: {field.meaning}" for field in fields]
    presets = [
        f"on {benchmark}: {', '.join(f'{key} {value}' for key, value in preset.items())}"
        for benchmark, preset in method.presets.items()
    ]
    free = ["needs no source data"] if method.source_free else []
    record = dataclasses.asdict(dataclasses.replace(method, presets=dict(method.presets)))
    for field in record["hyperparameters"]:
        if field["range"]:
            field["range"] = {key: field["range"][key] for key in ("low", "high", "log")}
    return Item(
        method.idea,
        [*facts, *presets, method.reference],
        [*filter(None, [method.notes]), *explained, *presets, *free, method.reference],
        record,
    )


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _default(field: "Hyperparameter") -> str:
    """The default, and the range to search where there is one."""
    value = _plain(field.default)
    if field.range is None:
        return value
    return f"{value} ({field.range.low:g} to {field.range.high:g})"


def recipes() -> Listing:
    from equida.methods.describe import field_docstrings
    from equida.training.recipe import RECIPES, Recipe

    meanings = field_docstrings(Recipe)
    items = {}
    for name in RECIPES:
        values = dataclasses.asdict(RECIPES[name])
        shown = {key: _plain(value) for key, value in values.items() if value != ""}
        items[name] = Item(
            IDEAS[name],
            [", ".join(f"{key} {text}" for key, text in shown.items())],
            [f"{key} {text}: {meanings.get(key, '')}" for key, text in shown.items()],
            values,
        )
    return Listing(
        items,
        "Each value is a flag of `equida adapt`, such as --batch-size 18. "
        "`equida list recipes NAME` explains one.",
    )


IDEAS = {
    "features": "A head on features that are computed once: seconds to a minute on one core.",
    "paper": "All of a network on images, as the authors of BNM train it.",
    "digits": "A small network on images of digits, from scratch.",
}


def datasets() -> Listing:
    from equida.data import BENCHMARKS

    return Listing(
        {name: _dataset_item(BENCHMARKS[name]) for name in BENCHMARKS},
        "`equida list datasets NAME` says where to get one and its classes; "
        "`equida doctor NAME --data DIR` checks it.",
    )


def _dataset_item(benchmark: "Benchmark") -> Item:
    images = sum(domain.images for domain in benchmark.domains)
    domains = ", ".join(f"{d.key} ({d.title}, {d.images:,})" for d in benchmark.domains)
    tasks = f"tasks: {', '.join(benchmark.tasks)}"
    return Item(
        f"{benchmark.title}: {images:,} images, {len(benchmark.classes)} classes",
        [f"domains: {domains}", tasks],
        [
            f"domains: {domains}",
            tasks,
            f"classes: {', '.join(benchmark.classes)}",
            f"metric: {benchmark.metric}",
            "get it: " + " ".join(filter(None, (benchmark.page, benchmark.obtain))),
            f"expected: {benchmark.layout}",
        ],
        dataclasses.asdict(benchmark),
    )


LISTINGS: dict[str, Callable[[], Listing]] = {
    "methods": methods,
    "recipes": recipes,
    "datasets": datasets,
}
