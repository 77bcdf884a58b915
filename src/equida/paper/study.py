"""Everything that `equida paper` shows, from folders of runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equida.paper.figures import sample_figure, tsne_figure
from equida.paper.items import PaperContext, PaperItem, choose_groups, paper_command
from equida.paper.parameter_figure import parameter_figure
from equida.paper.result_tables import equity_table, r_tables, result_tables
from equida.paper.tables import RESULTS
from equida.paper.theory_item import find_theory, read_theory, theory_item
from equida.paper.verdicts import Verdict, paper_verdicts
from equida.runs.group import RunGroup
from equida.runs.read import Run


@dataclass(frozen=True)
class PaperStudy:
    """Every item in the paper's order, the verdicts, and the runs behind them."""

    items: tuple[PaperItem, ...]
    verdicts: tuple[Verdict, ...]
    used: Mapping[str, RunGroup]
    """The runs that were used, by benchmark."""
    left_out: tuple[RunGroup, ...]
    """Runs on other data, networks or recipes, which cannot stand in the same tables."""
    select: str
    theory: Mapping[str, Any] | None = None
    """The record of `equida theory`, where there is one."""


def paper_study(
    runs: Sequence[Run],
    roots: Sequence[Path],
    folder: Path,
    *,
    select: str = "last",
    images: Mapping[str, str] | None = None,
    theory: Path | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> PaperStudy:
    """Recompute the paper from runs; figures are written into `folder`.

    Args:
        runs: all runs there are.
        roots: the folders of runs; commands for further runs name the first.
        folder: where figures go.
        select: the evaluation of a run that counts.
        images: by benchmark, the folder of its images, where runs do not name it.
        theory: theory.json of `equida theory`; without it, `find_theory` looks for one.
        note: called with what is being done.
    """
    used, left_out = choose_groups(runs, list(RESULTS))
    context = PaperContext(used, roots[0], select)

    def same_command(folders: Mapping[str, str]) -> str:
        return paper_command(roots, folder, select=select, images=folders, theory=theory)

    note("tables")
    main_tables, tables_of_r = result_tables(context), r_tables(context)
    note("sample images")
    samples = sample_figure(context, images or {}, folder, same_command)
    note("t-SNE")
    tsne = tsne_figure(context, folder)
    note("parameters")
    parameters = parameter_figure(context, folder)
    file = theory or find_theory(roots)
    record = read_theory(file) if file else None
    return PaperStudy(
        (
            theory_item(record, file.parent if file else folder, folder),
            samples,
            *main_tables,
            equity_table(context),
            tsne,
            *tables_of_r,
            parameters,
        ),
        tuple(verdict for group in used.values() for verdict in paper_verdicts(group, select)),
        used,
        tuple(left_out),
        select,
        record,
    )
