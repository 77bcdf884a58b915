"""The paper's tables of trained networks: accuracies (4 to 6, 8 to 10) and equity (7)."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from equida.data.benchmarks import BENCHMARKS
from equida.evaluation import figures
from equida.experiments.sweep import make_variant
from equida.paper.items import PAPER_SEEDS, PaperContext, PaperItem, seed_range
from equida.paper.reference import RReference, reference
from equida.paper.tables import EQUITY_TABLE, EQUITY_TASK, R_TABLES, RESULTS, PaperTable
from equida.runs.entry import Entry
from equida.runs.table import Cell, Column, Reference, Row, Table, heading, make_table, row_cells
from equida.runs.variant import Variant

R_SWEEP = "r=0.5,1"
"""The values of r that the paper compares, as `--sweep` takes them."""


def result_tables(context: PaperContext) -> list[PaperItem]:
    """Tables 4 to 6: every method on every task."""
    return [
        _accuracy_item(
            context,
            table,
            [Variant(row.method) for row in table.rows],
            reference(name),
            methods="all" if len(table.rows) == 11 else ",".join(r.method for r in table.rows),
        )
        for name, table in RESULTS.items()
    ]


def r_tables(context: PaperContext) -> list[PaperItem]:
    """Tables 8 to 10: accuracy for r = 0.5 and 1, of which the better is marked."""
    return [
        _accuracy_item(
            context,
            table,
            r_variants(name),
            RReference(table),
            methods="cwsm,nsm",
            sweeps=(R_SWEEP,),
        )
        for name, table in R_TABLES.items()
    ]


def r_variants(benchmark: str) -> list[Variant]:
    """CWSM and NSM, each with r = 0.5 and 1."""
    return [make_variant(m, {"r": r}, benchmark) for m in ("cwsm", "nsm") for r in (0.5, 1.0)]


def _accuracy_item(
    context: PaperContext,
    printed: PaperTable,
    variants: Sequence[Variant],
    published: Reference | None,
    *,
    methods: str,
    sweeps: Sequence[str] = (),
) -> PaperItem:
    """A table with a row for every variant, those without runs too.

    Where values are swept, the better of each method is marked.
    """
    benchmark, group = printed.benchmark, context.groups.get(printed.benchmark)
    entries = group.of(variants) if group else []
    tasks = BENCHMARKS[benchmark].tasks
    table = make_table(
        [*(Entry(variant, task, -1) for variant in variants for task in tasks), *entries],
        benchmark=benchmark,
        tasks=tasks,
        seeds=sorted({entry.seed for entry in entries if entry.result is not None}),
        select=context.select,
        network=group.network if group else "",
        reference=published,
        rank_within_methods=bool(sweeps),
    )
    have = sum(cell.count > 0 for cell in table.cells)
    seeds = seed_range(table.cells)
    item = PaperItem(
        printed.label, printed.heading, have, len(table.cells), tables=(table,), seeds=seeds
    )
    if item.complete:
        return item
    too_few = seeds is not None and seeds[0] < PAPER_SEEDS
    return dataclasses.replace(
        item,
        command=context.command(benchmark, methods=methods, sweeps=sweeps),
        remarks=("The paper's figures are means of three seeds.",) if too_few else (),
    )


def equity_table(context: PaperContext) -> PaperItem:
    """Table 7: equity and discriminability for r = 0.5 and 1, on Ar→Cl and on other data."""
    paper_data = EQUITY_TABLE.benchmark
    tables = {}
    for name, group in context.groups.items():
        entries = [entry for entry in group.of(r_variants(name)) if entry.result is not None]
        if name == paper_data:
            entries = [entry for entry in entries if entry.task == EQUITY_TASK]
        if entries:
            tables[name] = _measures_table(name, group.network, entries, context.select)
    cells = tables[paper_data].cells if paper_data in tables else []
    remarks = [note.text for note in EQUITY_TABLE.notes]
    if tables and paper_data not in tables:
        remarks.append("The tables below show the same figures on other data than the paper's.")
    item = PaperItem(
        EQUITY_TABLE.label,
        EQUITY_TABLE.heading,
        sum(cell.count > 0 for cell in cells),
        len(EQUITY_TABLE.rows) * len(EQUITY_TABLE.columns),
        tables=tuple(tables.values()) or (_measures_table(paper_data, "", [], context.select),),
        remarks=tuple(remarks),
        seeds=seed_range(cells),
    )
    if item.complete:
        return item
    command = context.command(paper_data, methods="cwsm,nsm", tasks=EQUITY_TASK, sweeps=(R_SWEEP,))
    return dataclasses.replace(item, command=command)


def _measures_table(benchmark: str, network: str, entries: Sequence[Entry], select: str) -> Table:
    """Equity and discriminability of each r, over the tasks and seeds that all of them have."""
    data_set = BENCHMARKS[benchmark]
    tasks, seeds = shared_places(entries, data_set.tasks)
    columns = tuple(
        Column(figure.title, figure.title, accuracy=False)
        for figure in figures.columns()
        if figure.title in EQUITY_TABLE.columns
    )
    rows = []
    for variant in r_variants(benchmark):
        mine = [
            entry
            for entry in entries
            if entry.variant.key() == variant.key() and entry.task in tasks and entry.seed in seeds
        ]
        rows.append(_measures_row(variant, row_cells(mine, data_set, tasks, select), benchmark))
    place = ", ".join(heading(task) for task in tasks) or heading(EQUITY_TASK)
    title = [f"Equity and discriminability on {data_set.title}"]
    if tasks or not entries:
        title.append(f"the mean of {place}" if len(tasks) > 1 else place)
    notes = []
    if tasks:
        listed = ", ".join(map(str, seeds))
        notes.append(f"Over what all rows with runs have: {place}; seed(s) {listed}.")
    elif entries:
        notes.append("The rows have no task and seed in common, so that none can be compared.")
    if benchmark != EQUITY_TABLE.benchmark:
        notes.append(
            f"The paper's figures are of Office-Home, Ar→Cl, with {EQUITY_TABLE.network}: another"
            " data set and network, so that no difference is given."
        )
    return Table(
        ", ".join([*title, network] if network else title),
        columns,
        tuple(rows),
        seeds,
        select,
        benchmark,
        tuple(notes),
    )


def _measures_row(variant: Variant, cells: Mapping[str, Cell], benchmark: str) -> Row:
    """Our figures with the paper's below, which are comparable on the paper's data only."""
    printed = EQUITY_TABLE.row(variant.method, variant.shown)
    assert printed is not None
    comparable = benchmark == EQUITY_TABLE.benchmark
    shown = {
        key: dataclasses.replace(
            cells[key], printed=dataclasses.replace(printed.cells[key], comparable=comparable)
        )
        for key in EQUITY_TABLE.columns
    }
    return Row(variant, shown, printed)


def shared_places(
    entries: Sequence[Entry], order: Sequence[str]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The tasks (in order) and the seeds that all variants have, such that most runs count."""
    places: dict[Any, set[tuple[str, int]]] = {}
    for entry in entries:
        places.setdefault(entry.variant.key(), set()).add((entry.task, entry.seed))
    common = set.intersection(*places.values()) if places else set()
    by_task = {task: {s for t, s in common if t == task} for task in order}
    options = [
        (tuple(t for t in order if seeds <= by_task[t]), tuple(sorted(seeds)))
        for seeds in by_task.values()
        if seeds
    ]
    return max(options, key=lambda option: len(option[0]) * len(option[1]), default=((), ()))
