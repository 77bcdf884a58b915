"""`equida doctor`: check a data set or this installation, and say what to do."""

import dataclasses
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from equida.cli._flags import DATASET_HELP
from equida.data.benchmarks import Benchmark, benchmark
from equida.data.doctor import DataCheck, check_data, is_data_path
from equida.data.domain import ImageDomain
from equida.data.open import load_domain
from equida.data.survey import Survey
from equida.data.task import present_classes
from equida.errors import counted, enumerated
from equida.progress import safe_console


@dataclass(frozen=True)
class Arguments:
    """Check a data set, any folder of images, or this installation.

    equida doctor office31 --data DIR
    equida doctor MY_DOMAINS/ --write-toml

    The exit code is 0 if training would work.
    """

    dataset: Annotated[
        str | None,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="DATASET", help=DATASET_HELP),
    ] = None
    data: Path | None = None
    """The folder with the domains, a feature file (.npz, .safetensors) or an image list."""
    lists: Path | None = None
    """Folder of the image lists of a data set that chooses its samples by lists."""
    root: Path | None = None
    """The folder of the images, where --data is an image list."""
    deep: bool = False
    """Decode every image instead of looking at its first and last bytes; features are always
    looked at as a whole."""
    skip_unreadable: bool = False
    """Accept unreadable files and rows, as training with --skip-unreadable does."""
    write_toml: bool = False
    """Write a first dataset.toml into your own data set, to be edited; it is never replaced."""


def run(arguments: Arguments) -> int:
    console = safe_console(highlight=False, soft_wrap=True)
    if arguments.dataset is None and arguments.data is None:
        from equida.cli._installation import print_installation

        return print_installation(console)
    if arguments.dataset is not None and arguments.data is None and is_data_path(arguments.dataset):
        arguments = dataclasses.replace(arguments, dataset=None, data=Path(arguments.dataset))
    chosen = None if arguments.dataset is None else benchmark(arguments.dataset)
    missing = chosen is not None and arguments.data is None and not chosen.embedded
    if chosen is not None and missing and not arguments.write_toml:
        console.print(f"To check {chosen.title}, give its folder: --data DIR.\n")
        _print_how_to_get(console, chosen)
        return 1
    start = time.monotonic()
    found = check_data(**vars(arguments))
    seconds = time.monotonic() - start
    _print_table(console, chosen, arguments.data, found.domains)
    _print_findings(console, found.domains, arguments.data)
    if not found.too_few_classes:
        _print_verdict(console, chosen, arguments, found.domains, seconds)
    if chosen is None and found.data_set is not None:
        _print_own(console, found, arguments)
    if (known := found.looks_like) is not None:
        console.print(
            f"This looks like {known.title}: equida doctor {known.name} --data {arguments.data}"
            " compares it with the published counts.",
            markup=False,
        )
    return 0 if found.sound else 1


def _print_own(console: Console, found: DataCheck, arguments: Arguments) -> None:
    """What tasks of the data set would use, and how to use it."""
    own = found.data_set
    assert own is not None
    domains = {key.key: load_domain(own, key.key) for key in own.domains}
    present = [
        set(present_classes(domain)) for domain in domains.values() if domain.labels is not None
    ]
    shared = len(set.intersection(*present))
    console.print(
        f"\n{counted(len(own.domains), 'domain')}, {counted(len(own.tasks), 'task')},"
        f" {counted(len(own.classes), 'class', 'classes')}, {shared} of them in every labelled"
        " domain.",
        markup=False,
    )
    for key, domain in domains.items():
        if domain.labels is None:
            console.print(f"  {key}: unlabelled; it can be a target only", markup=False)
        elif gone := [name for name in own.classes if name not in present_classes(domain)]:
            named = enumerated(gone, 5)
            which = counted(len(gone), "class", "classes")
            console.print(f"  {key}: has no samples of {which}: {named}", markup=False)
    place = shlex.quote(str(arguments.data))
    if found.written is not None:
        console.print(f"Written: {found.written}", markup=False)
    images = " --features" if any(isinstance(d, ImageDomain) for d in domains.values()) else ""
    if found.too_few_classes:
        console.print(
            f"{place}: every sample is of one class, and training needs at least two"
            + ("; expected DIR/DOMAIN/CLASS/image.jpg, and no folders in CLASS" if images else ""),
            markup=False,
        )
        return
    console.print(f"Run it: equida bench {place}{images} --out RUNS", markup=False)


def _print_table(
    console: Console, chosen: Benchmark | None, data: Path | None, surveys: Sequence[Survey]
) -> None:
    title = chosen.title if chosen is not None else "Data"
    place = f" in {escape(str(data))}" if data is not None else ""
    console.print(f"[bold]{escape(title)}[/bold]{place}")
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("domain", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=4)
    table.add_column("where", overflow="fold")
    published = ["published"] if chosen else []
    for heading in (_what(surveys), *published, "classes", _unusable(surveys)):
        table.add_column(heading, justify="right", no_wrap=True)
    for survey in surveys:
        table.add_row(
            escape(survey.title),
            "[green]ok[/green]" if survey.sound else "[red]bad[/red]",
            escape(_relative_place(survey.place, data)) if survey.place else "not found",
            f"{survey.images:,}",
            *([f"{survey.published:,}"] if chosen else []),
            f"{survey.classes}/{survey.expected_classes}" if chosen else _labelled(survey),
            f"{len(survey.unreadable + survey.left_out):,}",
        )
    console.print(table)


def _what(surveys: Sequence[Survey]) -> str:
    """What the samples are called."""
    kinds = {survey.holds_rows for survey in surveys if survey.domain is not None}
    return {(True,): "rows", (False, True): "samples"}.get(tuple(sorted(kinds)), "images")


def _unusable(surveys: Sequence[Survey]) -> str:
    """What samples that cannot be used are called: rows can be read, but hold no usable values."""
    return "unusable" if _what(surveys) == "rows" else "unreadable"


def _labelled(survey: Survey) -> str:
    unlabelled = survey.domain is not None and survey.domain.labels is None
    return "unlabelled" if unlabelled else str(survey.classes)


def _relative_place(place: str, data: Path | None) -> str:
    if data is None:
        return place
    path, base = Path(place).absolute(), data.absolute()
    if path == base:
        return base.name or str(base)
    return str(path.relative_to(base)) if path.is_relative_to(base) else place


def _print_findings(console: Console, surveys: Sequence[Survey], data: Path | None) -> None:
    def section(heading: str, colour: str, lines: list[str]) -> None:
        if lines:
            console.print(f"\n[{colour}]{heading}[/{colour}]")
            for line in lines:
                console.print(f"  {line}", markup=False)

    def files(kind: str) -> list[str]:
        return [
            f"{_file(survey, path, data)}: {reason}"
            for survey in surveys
            for path, reason in getattr(survey, kind)
        ]

    for kind, heading in (("missing", "Missing"), ("extra", "Not expected")):
        section(
            heading, "red", [f"{s.title}: {text}" for s in surveys for text in getattr(s, kind)]
        )
    heading = _unusable(surveys).capitalize()
    section(heading, "red", files("unreadable"))
    section(f"{heading}, left out", "yellow", files("left_out"))
    section("Notes", "yellow", [f"{s.title}: {text}" for s in surveys for text in s.notes])


def _file(survey: Survey, path: str, data: Path | None) -> str:
    if not isinstance(survey.domain, ImageDomain):
        return f"{survey.title}: {path}"
    return _relative_place(str(survey.domain.root / path), data)


def _print_verdict(
    console: Console,
    chosen: Benchmark | None,
    arguments: Arguments,
    surveys: Sequence[Survey],
    seconds: float,
) -> None:
    total = sum(survey.images for survey in surveys)
    images = any(isinstance(survey.domain, ImageDomain) for survey in surveys)
    quick = "; --deep decodes every image" if images and not arguments.deep else ""
    done = f"{counted(total, 'sample')} checked in {seconds:.1f} s{quick}."
    console.print()
    if all(survey.sound for survey in surveys):
        if chosen is not None:
            console.print(f"[green]As published.[/green] Ready: {' '.join(chosen.tasks)}. {done}")
        else:
            console.print(f"[green]Usable.[/green] {done}")
    else:
        console.print(f"[bold]What to do[/bold]   ({done})")
        _print_advice(console, chosen, arguments, surveys)


def _print_advice(
    console: Console, chosen: Benchmark | None, arguments: Arguments, surveys: Sequence[Survey]
) -> None:
    if any(survey.extra and survey.images for survey in surveys):
        console.print("  Move or rename what is not expected.")
    if any(survey.extra and not survey.images for survey in surveys):
        console.print("  Give a folder, an image list or a feature file with samples.")
    for rows, verbs, what in (
        (False, "Replace or delete", "unreadable file"),
        (True, "Compute again or remove", "unusable row"),
    ):
        bad = sum(len(each.unreadable) for each in surveys if each.holds_rows == rows)
        if bad:
            them = "it" if bad == 1 else "them"
            console.print(
                f"  {verbs} the {counted(bad, what)}, or train with --skip-unreadable, which leaves"
                f" {them} out."
            )
    if chosen is not None and any(survey.missing or not survey.place for survey in surveys):
        if arguments.data is not None and _is_domain(chosen, arguments.data):
            console.print(f"  Give the folder above it: --data {arguments.data.resolve().parent}")
        console.print(
            "  Get what is missing; without it, results cannot be compared with published ones."
        )
        _print_how_to_get(console, chosen)


def _is_domain(chosen: Benchmark, data: Path) -> bool:
    return any(domain.goes_by(data.resolve().name) for domain in chosen.domains)


def _print_how_to_get(console: Console, chosen: Benchmark) -> None:
    console.print(f"  {chosen.title}: {chosen.page}", markup=False)
    console.print(f"  {chosen.obtain}.", markup=False)
    console.print(f"  Folders: {chosen.layout}", markup=False)
    counts = ", ".join(f"{domain.key} {domain.images:,}" for domain in chosen.domains)
    console.print(f"  Images:  {counts}; {len(chosen.classes)} classes", markup=False)
