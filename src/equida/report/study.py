"""Everything that `equida paper` says, from folders of runs."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from equida.bench.paper_tables import RESULTS
from equida.bench.settings import Setting, settings
from equida.bench.store import Run
from equida.data.benchmarks import BENCHMARKS
from equida.errors import InputError
from equida.report.exhibits import (
    Exhibit,
    Material,
    equity_table,
    parameter_figure,
    r_tables,
    result_tables,
    tsne_figure,
)
from equida.report.figures import draw_curves, draw_samples, draw_tsne
from equida.report.verdicts import Verdict, verdicts

THEORY_COMMAND = "equida theory --out theory"


@dataclass(frozen=True)
class PaperStudy:
    """Every exhibit in the paper's order, the verdicts, and what was used."""

    exhibits: tuple[Exhibit, ...]
    verdicts: tuple[Verdict, ...]
    used: Mapping[str, Setting]
    left_out: tuple[Setting, ...]
    """Runs of other recipes or networks, which cannot be in the same table."""
    select: str
    theory: Mapping[str, Any] | None = None


def study(
    runs: Sequence[Run],
    root: Path,
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
        root: the folder of runs that commands for further ones name.
        folder: where figures go.
        select: which evaluation of a run counts.
        images: by benchmark, the folder of its images, where runs do not name it.
        theory: theory.json of `equida theory`.
        note: told what is being done.
    """
    found = settings(runs)
    used = {name: found[name][0] for name in sorted(found, key=_rank)}
    material = Material(used, root, select)
    note("tables")
    results, varied = result_tables(material), r_tables(material)
    note("sample images")
    samples = _samples(used, images or {}, folder)
    note("t-SNE")
    tsne = tsne_figure(material, partial(draw_tsne, folder=folder))
    note("parameters")
    parameters = parameter_figure(material, partial(draw_curves, folder=folder))
    record = _theory(theory)
    return PaperStudy(
        (
            _theory_exhibit(record),
            samples,
            *results,
            equity_table(material),
            tsne,
            *varied,
            parameters,
        ),
        tuple(v for setting in used.values() for v in verdicts(setting, select)),
        used,
        tuple(setting for each in found.values() for setting in each[1:]),
        select,
        record,
    )


def _rank(name: str) -> int:
    order = list(RESULTS)
    return order.index(name) if name in order else len(order)


def _samples(used: Mapping[str, Setting], images: Mapping[str, str], folder: Path) -> Exhibit:
    """Figure 2: a row of images for each domain of each data set that is reachable."""
    files: list[str] = []
    remarks = []
    for name in RESULTS:
        config = used[name].config if name in used else None
        known = config.task.data if config and config.task else None
        data = images.get(name) or known
        if data is None or not Path(data).is_dir():
            title = BENCHMARKS[name].title
            remarks.append(f"{title}: no folder of images is known; give --images {name}=DIR.")
            continue
        files += draw_samples(name, data, folder)
    return Exhibit(
        "fig:dataset",
        "Figure 2. Sample images of every domain",
        len(files) // 2,
        len(RESULTS),
        figures=tuple(files),
        remarks=tuple(remarks),
    )


def _theory(file: Path | None) -> dict[str, Any] | None:
    if file is None:
        return None
    try:
        record: dict[str, Any] = json.loads(file.read_text())
        record["checks"][0]["verdict"]
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        raise InputError(
            f"{file} is not a record of equida theory; make one: {THEORY_COMMAND}"
        ) from None
    return record


def _theory_exhibit(record: Mapping[str, Any] | None) -> Exhibit:
    """Tables 1 to 3, Figure 1 and the theorems, which need no training."""
    title = "Tables 1 to 3, Figure 1 and the theorems (no training needed)"
    if record is None:
        return Exhibit("theory", title, 0, 1, THEORY_COMMAND)
    counts: dict[str, int] = {}
    for check in record["checks"]:
        counts[check["verdict"]] = counts.get(check["verdict"], 0) + 1
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    wrong = [
        f"{check['verdict']}: {check['claim']} ({check['reference']}): {check['explanation']}"
        for check in record["checks"]
        if check["verdict"] != "holds"
    ]
    summary = f"{len(record['checks'])} checks: {listed}."
    return Exhibit("theory", title, 1, 1, remarks=(summary, *wrong), data={"verdicts": counts})
