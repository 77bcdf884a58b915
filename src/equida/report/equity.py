"""The paper's Table 7: equity and discriminability for two r."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from equida.bench.paper_tables import EQUITY_TABLE, EQUITY_TASK
from equida.bench.results import MEASURES, Record, by_column
from equida.data.benchmarks import BENCHMARKS
from equida.report.exhibit import Exhibit, Material, counts
from equida.report.exhibits import r_variants
from equida.report.tables import Cell, Comparison, Line, heading


def equity_table(material: Material) -> Exhibit:
    """Table 7: equity and discriminability for r = 0.5 and 1, on Ar→Cl and on other data."""
    made = {}
    for name, setting in material.settings.items():
        found = [r for r in setting.records(r_variants(name)) if r.result is not None]
        if name == EQUITY_TABLE.benchmark:
            found = [record for record in found if record.task == EQUITY_TASK]
        if found:
            made[name] = _measures_table(name, setting.network, found, material.select)
    own = made.get(EQUITY_TABLE.benchmark)
    cells = [cell for line in own.lines for cell in line.cells.values()] if own else []
    exhibit = Exhibit(
        EQUITY_TABLE.label,
        EQUITY_TABLE.heading,
        sum(cell.ours.count > 0 for cell in cells),
        len(EQUITY_TABLE.rows) * len(EQUITY_TABLE.columns),
        tables=tuple(made.values())
        or (_measures_table(EQUITY_TABLE.benchmark, "", [], material.select),),
        remarks=tuple(note.text for note in EQUITY_TABLE.notes)
        + (
            ("Below: the same figures on other data than the paper's.",) if made and not own else ()
        ),
        seeds=counts(cells),
    )
    command = material.command(
        EQUITY_TABLE.benchmark, methods="cwsm,nsm", tasks=EQUITY_TASK, sweeps=("r=0.5,1",)
    )
    return exhibit if exhibit.complete else dataclasses.replace(exhibit, command=command)


def _measures_table(
    benchmark: str, network: str, records: Sequence[Record], select: str
) -> Comparison:
    """Equity and discriminability of each r, over the tasks and seeds that all of them have."""
    data_set, own = BENCHMARKS[benchmark], benchmark == EQUITY_TABLE.benchmark
    tasks, seeds = shared_places(records, data_set.tasks)
    lines = []
    for variant in r_variants(benchmark):
        mine = [
            r
            for r in records
            if r.variant.key() == variant.key() and r.task in tasks and r.seed in seeds
        ]
        columns = by_column(mine, data_set, tasks, select)
        printed = EQUITY_TABLE.row(variant.method, variant.shown)
        assert printed is not None
        cells = {
            key: Cell(columns[key], printed.entries[key].value, digits=3, comparable=own)
            for key in MEASURES
        }
        lines.append(Line(variant, cells, printed))
    where = ", ".join(heading(task) for task in tasks) or heading(EQUITY_TASK)
    over = f"the mean of {where}" if len(tasks) > 1 else where
    notes = []
    if tasks:
        listed = ", ".join(map(str, seeds))
        notes.append(f"Over what all rows with runs have: {where}; seed(s) {listed}.")
    elif records:
        notes.append("The rows have no task and seed in common, so that none can be compared.")
    if not own:
        notes.append(
            "The paper's figures are of Office-Home, Ar→Cl, with ResNet-50: another data set and"
            " network, so that no difference is given."
        )
    return Comparison(
        f"Equity and discriminability on {data_set.title}"
        + (f", {over}" if tasks or not records else "")
        + (f", {network}" if network else ""),
        benchmark,
        {key: key for key in MEASURES},
        tuple(lines),
        seeds,
        select,
        tuple(notes),
    )


def shared_places(
    records: Sequence[Record], order: Sequence[str]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The tasks, in this order, and the seeds that all variants with runs have; most runs win."""
    places: dict[Any, set[tuple[str, int]]] = {}
    for record in records:
        places.setdefault(record.variant.key(), set()).add((record.task, record.seed))
    common = set.intersection(*places.values()) if places else set()
    by_task = {task: {s for t, s in common if t == task} for task in order}
    options = [
        (tuple(t for t in order if seeds <= by_task[t]), tuple(sorted(seeds)))
        for seeds in by_task.values()
        if seeds
    ]
    return max(options, key=lambda option: len(option[0]) * len(option[1]), default=((), ()))
