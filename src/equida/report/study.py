"""Everything that `equida paper` says, from folders of runs."""

import json
import shutil
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
from equida.report.commands import paper_command
from equida.report.equity import equity_table
from equida.report.exhibit import Exhibit, Material
from equida.report.exhibits import r_tables, result_tables, tsne_figure
from equida.report.figures import draw_curves, draw_samples, draw_tsne
from equida.report.parameters import parameter_figure
from equida.report.verdicts import Verdict, verdicts

THEORY_COMMAND = "equida theory --out theory"
RECORD = "theory.json"
SURFACES = "surfaces"
"""What `equida theory` calls its Figure 1."""


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
        roots: the folders of runs; commands for further ones name the first.
        folder: where figures go.
        select: which evaluation of a run counts.
        images: by benchmark, the folder of its images, where runs do not name it.
        theory: theory.json of `equida theory`; found in the usual places without.
        note: told what is being done.
    """
    found = settings(runs)
    used = {name: found[name][0] for name in sorted(found, key=_rank)}
    material = Material(used, roots[0], select)

    def again(folders: Mapping[str, str]) -> str:
        return paper_command(roots, folder, select=select, images=folders, theory=theory)

    note("tables")
    results, varied = result_tables(material), r_tables(material)
    note("sample images")
    samples = _samples(used, images or {}, folder, again)
    note("t-SNE")
    tsne = tsne_figure(material, partial(draw_tsne, folder=folder))
    note("parameters")
    parameters = parameter_figure(material, partial(draw_curves, folder=folder))
    file = theory or find_theory(roots)
    record = _theory(file)
    return PaperStudy(
        (
            _theory_exhibit(record, file.parent if file else folder, folder),
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


def _samples(
    used: Mapping[str, Setting],
    images: Mapping[str, str],
    folder: Path,
    command: Callable[[Mapping[str, str]], str],
) -> Exhibit:
    """Figure 2: a row of images for each domain of each data set that is reachable."""
    files: list[str] = []
    missing = {}
    for name in RESULTS:
        config = used[name].config if name in used else None
        known = config.task.data if config and config.task else None
        data = images.get(name) or known
        if data is None or not Path(data).is_dir():
            missing[name] = "DIR"
            continue
        files += draw_samples(name, data, folder)
    titles = ", ".join(BENCHMARKS[name].title for name in missing)
    return Exhibit(
        "fig:dataset",
        "Figure 2. Sample images of every domain",
        len(files) // 2,
        len(RESULTS),
        command({**images, **missing}) if missing else "",
        figures=tuple(files),
        remarks=(f"No folder of images is known of {titles}; leave out what you do not have.",)
        if missing
        else (),
    )


def find_theory(roots: Sequence[Path]) -> Path | None:
    """The theory.json in ./theory, in a folder of runs or in its folder theory, or None."""
    folders = [Path("theory"), *(folder for root in roots for folder in (root, root / "theory"))]
    return next((f / RECORD for f in folders if (f / RECORD).is_file()), None)


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


def _theory_exhibit(record: Mapping[str, Any] | None, source: Path, folder: Path) -> Exhibit:
    """Tables 1 to 3, Figure 1 and the theorems, which need no training."""
    title = "Tables 1 to 3, Figure 1 and the theorems (no training needed)"
    if record is None:
        return Exhibit("theory", title, 0, 4, THEORY_COMMAND)
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
    tables = theory_tables(record["checks"])
    figures = _copied(record.get("figures", ()), source, folder)
    have = len(tables) + (f"{SURFACES}.png" in figures)
    return Exhibit(
        "theory",
        title,
        have,
        4,
        "" if have == 4 else THEORY_COMMAND,
        texts=tuple(tables),
        figures=tuple(figures),
        remarks=(summary, *wrong),
        data={"verdicts": counts},
    )


def _copied(names: Sequence[str], source: Path, folder: Path) -> list[str]:
    """The figures beside a record that are there, now in `folder`; Figure 1 first."""
    found = [name for name in names if name == Path(name).name and (source / name).is_file()]
    for name in found:
        if source.resolve() != folder.resolve():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, folder / name)
    return sorted(found, key=lambda name: not name.startswith(SURFACES))


def theory_tables(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tables 1 to 3 as Markdown, each figure beside the printed one."""
    tables = [
        _example_table("Table 1", "The example matrices", checks),
        _complexity_table(checks),
        _example_table("Table 3", "The measures of the example matrices", checks),
    ]
    return [table for table in tables if table]


def _example_table(number: str, title: str, checks: Sequence[Mapping[str, Any]]) -> str:
    """A row for each matrix; the claim of a check is "COLUMN of MATRIX"."""
    rows: dict[str, dict[str, str]] = {}
    for check in checks:
        column, of, matrix = check["claim"].rpartition(" of ")
        if check["reference"] == number and check.get("printed") is not None and of:
            rows.setdefault(matrix, {})[column] = _both(check)
    heads = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = [[matrix, *(row.get(head, "") for head in heads)] for matrix, row in rows.items()]
    return _table(f"{number}. {title}: computed / printed", ["", *heads], lines)


def _complexity_table(checks: Sequence[Mapping[str, Any]]) -> str:
    rows: dict[str, dict[str, str]] = {}
    for check in checks:
        measured = check.get("computed")
        if isinstance(measured, dict) and "slope" in measured:
            row = rows.setdefault(measured["name"], {})
            row[""] = check["reference"].partition(", ")[2]
            row[measured["axis"]] = _both(check)
    lines = [[name, *(row.get(key, "") for key in ("", "B", "C"))] for name, row in rows.items()]
    heads = ["loss", "printed", "exponent of B", "exponent of C"]
    return _table("Table 2. Time: measured / printed exponents", heads, lines)


def _both(check: Mapping[str, Any]) -> str:
    star = "" if check["verdict"] == "holds" else " \\*"
    return f"{check['found']} / {check['printed']}{star}"


def _table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return ""
    rows = [heads, ["---"] + ["---:"] * (len(heads) - 1), *lines]
    text = ["| " + " | ".join(row) + " |" for row in rows]
    stars = any(cell.endswith("*") for line in lines for cell in line)
    notes = ["", "A star: not as printed; see the reason above."] if stars else []
    return "\n".join([f"**{title}**", "", *text, *notes])
