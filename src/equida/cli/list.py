"""`equida list methods|recipes|datasets`: everything that can be chosen by its name."""

import dataclasses
import json
import shutil
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import tyro

from equida.errors import InputError
from equida.fields import short_text, specs
from equida.registry import Registry

if typing.TYPE_CHECKING:
    from equida.data import Benchmark
    from equida.methods import Description, Hyperparameter
    from equida.training.recipe import NamedRecipe


@dataclass(frozen=True)
class Arguments:
    """List methods (with their idea, defaults, ranges and reference), recipes or data sets."""

    what: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="WHAT")]]
    """What to list: methods, recipes or datasets."""
    name: tyro.conf.Positional[Annotated[str | None, tyro.conf.arg(metavar="NAME")]] = None
    """Show only this one, or the parts of `a+b`, with everything that is known about it."""
    json: bool = False
    """Print JSON instead of text."""


class Item(NamedTuple):
    """One thing that can be chosen, for a list, for a page of its own and for a program."""

    idea: str
    facts: list[str]
    """Lines in the list of all items."""
    details: list[str]
    """Lines where only this item is shown."""
    record: dict[str, Any]
    """What JSON holds."""


class Listing(NamedTuple):
    """All items of one kind by name, and the text below them."""

    items: Mapping[str, Item]
    footer: str


def run(arguments: Arguments) -> int:
    if arguments.what not in LISTINGS:
        known = ", ".join(LISTINGS)
        raise InputError(f"WHAT is {arguments.what!r}; it must be one of {known}")
    items, footer = LISTINGS[arguments.what]()
    if arguments.name is not None:
        wanted: Sequence[str] = [arguments.name]
        if arguments.what == "methods":
            from equida.methods import method_parts

            items = {**items, **_own_methods(arguments.name)}
            wanted = method_parts(arguments.name)
        # A registry says which name may have been meant.
        known_items: Registry[Item] = Registry(arguments.what.removesuffix("s"))
        for name, item in items.items():
            known_items.add(name, item)
        items, footer = {name: known_items[name] for name in wanted}, ""
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
    """The name and, beside it, the lines, wrapped to the width of the terminal."""
    width = max(shutil.get_terminal_size().columns, indent + 40)
    heads = [name.ljust(indent), *[" " * indent] * (len(lines) - 1)]
    return [
        textwrap.fill(line, width, initial_indent=head, subsequent_indent=" " * (indent + 2))
        for head, line in zip(heads, lines, strict=True)
    ]


def _own_methods(name: str) -> dict[str, Item]:
    """The parts of a composition that are code of the user's own, `package.module:Class`."""
    from equida.methods import describe_method, method_code, method_name, method_parts

    method_name(name)  # the user has named it, so it may be imported
    return {
        part: _with_origin(_method_item(describe_method(part)), f"module {code.module}, {code}")
        for part in method_parts(name)
        if ":" in part
        for code in method_code(part)
    }


def _with_origin(item: Item, origin: str) -> Item:
    """The item with a line that says which plug-in it comes from."""
    line = [f"from {origin}"]
    facts, details = [*item.facts, *line], [*item.details, *line]
    return item._replace(facts=facts, details=details, record=item.record | {"from": origin})


def _items(registry: Registry[Any], item: Callable[[str], Item]) -> dict[str, Item]:
    """An item for each name; those of plug-ins say where they come from, or what is wrong."""
    found = {}
    for name in registry:
        offer = registry.offers.get(name)
        if offer is None:
            found[name] = item(name)
            continue
        try:
            found[name] = _with_origin(item(name), offer.source)
        except InputError as error:
            broken = Item("cannot be used", [str(error)], [str(error)], {"broken": str(error)})
            found[name] = _with_origin(broken, offer.source)
    return found


def methods() -> Listing:
    from equida.methods import METHODS, describe_method

    return Listing(
        _items(METHODS, lambda name: _method_item(describe_method(name))),
        "Two methods compose with a plus sign, as in cdan+nsm. "
        "`equida list methods NAME` explains one.",
    )


def _method_item(method: "Description") -> Item:
    fields = method.hyperparameters
    facts = [", ".join(f"{field.name} {_default(field)}" for field in fields)] if fields else []
    explained = [f"{field.name} {_default(field)}: {field.meaning}" for field in fields]
    presets = [
        f"on {benchmark}: {', '.join(f'{key} {short_text(v)}' for key, v in preset.items())}"
        for benchmark, preset in method.presets.items()
    ]
    reference = [method.reference] if method.reference else []
    free = ["needs no source data"] if method.source_free else []
    record = dataclasses.asdict(dataclasses.replace(method, presets=dict(method.presets)))
    for field in record["hyperparameters"]:
        if field["range"]:
            field["range"] = {key: field["range"][key] for key in ("low", "high", "log")}
    return Item(
        method.idea,
        [*facts, *presets, *reference],
        [*filter(None, [method.notes]), *explained, *presets, *free, *reference],
        record,
    )


def _default(field: "Hyperparameter") -> str:
    """The default, and the range to search where there is one."""
    value = short_text(field.default)
    if field.range is None:
        return value
    return f"{value} ({field.range.low:g} to {field.range.high:g})"


def recipes() -> Listing:
    from equida.training.recipe import RECIPES

    return Listing(
        {name: _recipe_item(RECIPES[name]) for name in RECIPES},
        "Each value is a flag of `equida adapt`, such as --batch-size 18. "
        "`equida list recipes NAME` explains one.",
    )


def _recipe_item(entry: "NamedRecipe") -> Item:
    values = dataclasses.asdict(entry.recipe)
    shown = {key: short_text(value) for key, value in values.items() if value != ""}
    meanings = {name: spec.meaning for name, spec in specs(type(entry.recipe)).items()}
    return Item(
        entry.idea,
        [", ".join(f"{key} {text}" for key, text in shown.items())],
        [f"{key} {text}: {meanings[key]}" for key, text in shown.items()],
        values,
    )


def datasets() -> Listing:
    from equida.data import BENCHMARKS

    return Listing(
        _items(BENCHMARKS, lambda name: _dataset_item(BENCHMARKS[name])),
        "`equida list datasets NAME` says where to get one and its classes; "
        "`equida doctor NAME --data DIR` checks it.",
    )


def _dataset_item(benchmark: "Benchmark") -> Item:
    images = sum(domain.images for domain in benchmark.domains)
    domains = ", ".join(f"{d.key} ({d.title}, {d.images:,})" for d in benchmark.domains)
    tasks = f"tasks: {', '.join(benchmark.tasks)}"
    record = dataclasses.asdict(benchmark)
    for domain in record["domains"]:
        del domain["load"]  # a function
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
        record,
    )


LISTINGS: dict[str, Callable[[], Listing]] = {
    "methods": methods,
    "recipes": recipes,
    "datasets": datasets,
}
