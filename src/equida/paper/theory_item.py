"""The paper's Tables 1 to 3, Figure 1 and theorems, from the record that `equida theory` writes."""

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from equida.errors import InputError
from equida.files import read_json
from equida.paper.items import PaperItem
from equida.paper.theory.checks import AXES
from equida.paper.theory.study import RECORD, SURFACES
from equida.records import conform

THEORY_COMMAND = "equida theory --out theory"
EXAMPLES = {1: "The example matrices", 3: "The measures of the example matrices"}


@dataclass(frozen=True)
class CheckRecord:
    """What is read of a check in theory.json."""

    verdict: str
    claim: str
    reference: str
    explanation: str
    table: int | None
    row: str
    column: str
    found: str


@dataclass(frozen=True)
class TheoryRecord:
    """What is read of theory.json."""

    checks: list[CheckRecord]
    figures: list[str]


def find_theory(roots: Sequence[Path], *, here: bool = True) -> Path | None:
    """The theory.json in ./theory, in a folder of runs or in its folder theory, or None.

    Args:
        roots: the folders of runs.
        here: whether ./theory counts.
    """
    folders = [folder for root in roots for folder in (root, root / "theory")]
    folders = [Path("theory"), *folders] if here else folders
    return next((f / RECORD for f in folders if (f / RECORD).is_file()), None)


def read_theory(file: Path) -> dict[str, Any]:
    """The record of a study of the theory."""
    try:
        record: dict[str, Any] = read_json(file)
        conform(record, TheoryRecord, str(file))
        if not record["checks"]:
            raise InputError("there are no checks")
        for check in record["checks"]:
            itemgetter("verdict", "claim", "reference", "explanation")(check)
            if check.get("table") is not None:
                itemgetter("row", "column", "found")(check)
                conform(check["printed"], float | str | None, "printed")
            if check.get("table") == 2:
                conform(check["computed"]["printed_order"], str, "printed_order")
    except (InputError, KeyError, TypeError):
        raise InputError(
            f"{file} is not a record of equida theory; make one: {THEORY_COMMAND}"
        ) from None
    return record


def theory_item(record: Mapping[str, Any] | None, source: Path, folder: Path) -> PaperItem:
    """Tables 1 to 3, Figure 1 and the theorems, which need no training.

    The figures are beside the record, in `source`, and are copied into `folder`.
    """
    title = "Tables 1 to 3, Figure 1 and the theorems (no training needed)"
    if record is None:
        return PaperItem("theory", title, 0, 4, THEORY_COMMAND)
    checks = record["checks"]
    counts = Counter(check["verdict"] for check in checks)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    remarks = [f"{len(checks)} checks: {listed}."]
    tables = theory_tables(checks)
    remarks += [
        f"{check['verdict']}: {check['claim']} ({check['reference']}): {check['explanation']}"
        for check in checks
        if check["verdict"] != "holds"
    ]
    figures = _copy_figures(record.get("figures", ()), source, folder)
    have = len(tables) + (f"{SURFACES}.png" in figures)
    return PaperItem(
        "theory",
        title,
        have,
        4,
        "" if have == 4 else THEORY_COMMAND,
        texts=tuple(tables),
        figures=tuple(figures),
        remarks=tuple(remarks),
        data={"verdicts": dict(counts)},
    )


def _copy_figures(names: Sequence[str], source: Path, folder: Path) -> list[str]:
    """Copy the record's figures that are there into `folder`; their names, Figure 1 first."""
    found = [name for name in names if name == Path(name).name and (source / name).is_file()]
    for name in found:
        if source.resolve() != folder.resolve():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, folder / name)
    return sorted(found, key=lambda name: not name.startswith(SURFACES))


def theory_tables(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tables 1 to 3 as Markdown, each figure beside the printed one, as far as there are checks."""
    tables = [_example_table(1, checks), _complexity_table(checks), _example_table(3, checks)]
    return [table for table in tables if table]


def _example_table(number: int, checks: Sequence[Mapping[str, Any]]) -> str:
    """A row for each matrix, a column for each measure."""
    mine = [check for check in checks if check.get("table") == number]
    cells = {(check["row"], check["column"]): _both_figures(check) for check in mine}
    columns = list(dict.fromkeys(check["column"] for check in mine))
    rows = [
        [row, *(cells.get((row, column), "") for column in columns)]
        for row in dict.fromkeys(check["row"] for check in mine)
    ]
    title = f"Table {number}. {EXAMPLES[number]}: computed / printed"
    return _markdown_table(title, ["", *columns], rows)


def _complexity_table(checks: Sequence[Mapping[str, Any]]) -> str:
    """A row for each loss, with the printed order and the exponents of B and C."""
    mine = [check for check in checks if check.get("table") == 2]
    cells = {(check["row"], check["column"]): _both_figures(check) for check in mine}
    orders = {check["row"]: check["computed"]["printed_order"] for check in mine}
    rows = [
        [row, order, *(cells.get((row, axis), "") for axis in AXES)]
        for row, order in orders.items()
    ]
    heads = ["loss", "printed", *(f"exponent of {axis}" for axis in AXES)]
    return _markdown_table("Table 2. Time: measured / printed exponents", heads, rows)


def _both_figures(check: Mapping[str, Any]) -> str:
    star = "" if check["verdict"] == "holds" else " \\*"
    return f"{check['found']} / {check['printed']}{star}"


def _markdown_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    stars = any(cell.endswith("*") for row in rows for cell in row)
    notes = ["", "A star: not as printed; the reason stands above."] if stars else []
    return "\n".join([f"**{title}**", "", *text, *notes])
