"""The paper's tables of accuracies and its t-SNE, and how to make what is missing of them."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from equida.bench.paper_tables import R_TABLES, RESULTS, TSNE_METHODS, TSNE_TASK, PaperTable
from equida.bench.results import Record
from equida.bench.settings import Setting
from equida.bench.sweep import Variant, make_variant
from equida.data.benchmarks import BENCHMARKS
from equida.report.exhibit import PAPER_SEEDS, Exhibit, Material, counts
from equida.report.tables import Comparison, comparison, heading


def result_tables(material: Material) -> list[Exhibit]:
    """Tables 4 to 6: every method on every task."""
    return [
        _table_exhibit(
            material,
            table,
            [Variant(row.method) for row in table.rows],
            methods="all" if len(table.rows) == 11 else ",".join(r.method for r in table.rows),
        )
        for table in RESULTS.values()
    ]


def r_tables(material: Material) -> list[Exhibit]:
    """Tables 8 to 10: accuracy for r = 0.5 and 1."""
    return [
        _table_exhibit(material, table, r_variants(name), methods="cwsm,nsm", sweeps=("r=0.5,1",))
        for name, table in R_TABLES.items()
    ]


def r_variants(benchmark: str) -> list[Variant]:
    """CWSM and NSM, each with r = 0.5 and 1."""
    return [make_variant(m, {"r": r}, benchmark) for m in ("cwsm", "nsm") for r in (0.5, 1.0)]


def _table_exhibit(
    material: Material, table: PaperTable, variants: Sequence[Variant], **asked: Any
) -> Exhibit:
    setting = material.settings.get(table.benchmark)
    records = setting.records(variants) if setting else []
    shown = _compared(table, setting, records, variants, material.select)
    cells = [cell for line in shown.lines for cell in line.cells.values()]
    have, seeds = sum(cell.ours.count > 0 for cell in cells), counts(cells)
    exhibit = Exhibit(table.label, table.heading, have, len(cells), tables=(shown,), seeds=seeds)
    if exhibit.complete:
        return exhibit
    few = seeds is not None and seeds[0] < PAPER_SEEDS
    return dataclasses.replace(
        exhibit,
        command=material.command(table.benchmark, seeds=PAPER_SEEDS, **asked),
        remarks=("The paper's figures are means of three seeds.",) if few else (),
    )


def _compared(
    table: PaperTable,
    setting: Setting | None,
    records: Sequence[Record],
    variants: Sequence[Variant],
    select: str,
) -> Comparison:
    """The table, with a row for every variant, those without runs too."""
    benchmark = table.benchmark
    seeds = sorted({record.seed for record in records if record.result is not None})
    tasks = BENCHMARKS[benchmark].tasks
    rows = [Record(variant, task, -1) for variant in variants for task in tasks]
    network = setting.network if setting else ""
    return comparison(
        [*rows, *records],
        benchmark,
        tasks,
        seeds,
        select=select,
        network=network,
        pairs=table in R_TABLES.values(),
    )


def tsne_place(material: Material) -> tuple[Setting, str, int] | None:
    """The task and seed that all four methods have: the paper's, or the first there is."""
    order = sorted(material.settings, key=lambda name: name != TSNE_TASK[0])
    for name in order:
        setting = material.settings[name]
        tasks = sorted(BENCHMARKS[name].tasks, key=lambda task: (name, task) != TSNE_TASK)
        for task in tasks:
            each = [set(setting.seeds(Variant(method), task)) for method in TSNE_METHODS]
            seeds = set.intersection(*each)
            if seeds:
                return setting, task, min(seeds)
    return None


def tsne_figure(material: Material, draw: Callable[[Setting, str, int], list[str]]) -> Exhibit:
    """t-SNE of target predictions, on the paper's task or on another that there is."""
    place = tsne_place(material)
    exact = place is not None and (place[0].benchmark, place[1]) == TSNE_TASK
    benchmark, task = TSNE_TASK
    command = material.command(benchmark, methods=",".join(TSNE_METHODS), tasks=task, seeds=1)
    remarks: tuple[str, ...] = ()
    if place is not None:
        setting, shown, seed = place
        title = BENCHMARKS[setting.benchmark].title
        what = f"Drawn: {title} {heading(shown)}, seed {seed}, {setting.network}."
        remarks = (what,) if exact else (f"{what} The paper's is Office-Home Ar→Cl.",)
    return Exhibit(
        "fig:tsne",
        "Figure 3. t-SNE of target predictions by MaxSquare, BNM, CWSM and NSM",
        4 if exact else 0,
        4,
        "" if exact else command,
        figures=tuple(draw(*place)) if place else (),
        remarks=remarks,
    )
