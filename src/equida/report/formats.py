"""A comparison as Markdown, LaTeX, CSV and JSON."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from equida.bench.results import MEASURES
from equida.report.tables import Cell, Comparison, Line

MINUS = "−"
MISSING = "–"
MARKDOWN = {"b": "**{}**", "u": "<u>{}</u>"}
MOST_COLUMNS = 9
"""Of a block of a LaTeX table: Office-31 with equity and discriminability."""
LATEX = {"b": r"\textbf{{{}}}", "u": r"\underline{{{}}}"}


def ours(cell: Cell, seeds: int) -> str:
    """Our figure with its deviation, and the number of seeds where it is not all of them."""
    mean = cell.ours.mean
    if mean is None:
        return "failed" if cell.ours.failed else MISSING
    text = f"{mean:.{cell.digits}f}"
    if cell.ours.deviation is not None:
        text += f" ± {cell.ours.deviation:.{cell.digits}f}"
    return text + (f" ({cell.ours.count}/{seeds})" if cell.ours.count < seeds else "")


def beside(cell: Cell, style: Mapping[str, str] | None = None) -> str:
    """The paper's figure, and ours minus it; nothing where the paper has none.

    Args:
        cell: both figures.
        style: by mark, how the paper's is set; plainly without one.
    """
    if cell.paper is None:
        return ""
    text = emphasized(f"{cell.paper:.{cell.digits}f}", cell.paper_mark, style or {})
    return text if cell.difference is None else f"{text} {signed(cell.difference, cell.digits)}"


def emphasized(text: str, mark: str, style: Mapping[str, str]) -> str:
    """The text as its mark is set."""
    return style.get(mark, "{}").format(text)


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign.

    >>> signed(-0.04), signed(-1.25), signed(0.3)
    ('0.0', '−1.2', '+0.3')
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", MINUS)


def markdown(table: Comparison) -> str:
    """The table with a line of the paper's figures below each of ours, and the notes."""
    rows = [["Method", *table.columns.values()]]
    for line in table.lines:
        rows.append([line.title, *(_strong(cell, table) for cell in line.cells.values())])
        if line.paper:
            printed = [beside(cell, MARKDOWN) for cell in line.cells.values()]
            rows.append([f"*paper: {_text(line.paper.title)}*", *printed])
    text = [_markdown_row(rows[0]), "|" + " --- |" + " ---: |" * len(table.columns)]
    text += [_markdown_row(row) for row in rows[1:]]
    notes = [f"- {_text(note)}" for note in _remarks(table)]
    return "\n".join([_text(table.caption), "", *text, "", *notes, ""])


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _strong(cell: Cell, table: Comparison) -> str:
    return emphasized(ours(cell, len(table.seeds)), cell.mark, MARKDOWN)


def _text(text: str) -> str:
    return text.replace("*", "\\*").replace("_", "\\_")


def _remarks(table: Comparison) -> list[str]:
    return [*table.notes, *(f"Failed: {run}: {reason}" for run, reason in table.failures.items())]


def latex(table: Comparison) -> str:
    """A table for a paper, no wider than its text; needs the packages booktabs and graphicx.

    More columns than `MOST_COLUMNS` come in blocks below each other, all in smaller type, because
    one block would have to be shrunk until nobody can read it.
    """
    keys = list(table.columns)
    count = -(-len(keys) // MOST_COLUMNS)
    size = -(-len(keys) // count)
    blocks = [keys[start : start + size] for start in range(0, len(keys), size)]
    # In blocks everything is as small as can be read.
    small = "" if count > 1 else r"\small "
    notes = [rf"\item {escape(note)}" for note in _remarks(table)]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs} and \usepackage{graphicx}",
            r"\begin{table}",
            r"\centering",
            r"\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{escape(table.caption)}}}",
            r"\medskip",
            *([r"\scriptsize"] if count > 1 else []),
            "\n\\smallskip\n\n".join(_latex_block(table, block, small) for block in blocks),
            r"\begin{itemize}" + (r"\scriptsize" if count > 1 else r"\footnotesize"),
            r"\setlength{\itemsep}{0pt}\setlength{\parskip}{0pt}",
            *notes,
            r"\end{itemize}",
            r"\end{table}",
            "",
        ]
    )


def _latex_block(table: Comparison, keys: Sequence[str], small: str) -> str:
    """Some columns, shrunk to the width of the text where they are wider."""
    head = ["Method", *(escape(table.columns[key]) for key in keys)]
    body = []
    for line in table.lines:
        cells = [_latex_cell(line.cells[key], table) for key in keys]
        body.append(" & ".join([escape(line.title), *cells]) + r" \\")
        if line.paper:
            body.append(_latex_paper(line, keys, small))
    return "\n".join(
        [
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{l{'r' * len(keys)}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
        ]
    )


def _latex_cell(cell: Cell, table: Comparison) -> str:
    text = escape(ours(cell, len(table.seeds))).replace(r" $\pm$ ", r"\,$\pm$\,")
    return emphasized(text, cell.mark, LATEX)


def _latex_paper(line: Line, keys: Sequence[str], small: str) -> str:
    assert line.paper is not None
    cells = [beside(line.cells[key], LATEX).replace(MINUS, "$-$") for key in keys]
    printed = [rf"{{{small}{text}}}" if text else "" for text in cells]
    title = rf"\quad{{{small}paper: {escape(line.paper.title)}}}"
    return " & ".join([title, *printed]) + r" \\"


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "→": r"$\to$",
    "±": r"$\pm$",
    MINUS: "$-$",
    MISSING: "--",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def escape(text: str) -> str:
    """Text that LaTeX prints as it is.

    >>> escape("50% of A→W")
    '50\\\\% of A$\\\\to$W'
    """
    return "".join(_LATEX.get(letter, letter) for letter in text)


def csv_text(table: Comparison) -> str:
    """One line for each figure, for programs."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    fields = ("method", "row", "column", "mean", "std", "seeds", "paper", "difference", "mark")
    writer.writerow((*fields, "select"))
    for line in table.lines:
        for key, cell in line.cells.items():
            numbers = (cell.ours.mean, cell.ours.deviation)
            mean, deviation = ("" if n is None else f"{n:.4f}" for n in numbers)
            paper = "" if cell.paper is None else f"{cell.paper:.4g}"
            difference = "" if cell.difference is None else f"{cell.difference:.4f}"
            mark = {"b": "best", "u": "second"}.get(cell.mark, "")
            found = (mean, deviation, cell.ours.count, paper, difference, mark, table.select)
            writer.writerow((line.variant.method, line.title, key, *found))
    return file.getvalue()


def json_text(table: Comparison) -> str:
    """Everything the table knows, with every seed's figure."""
    return json.dumps(as_json(table), indent=1, ensure_ascii=False) + "\n"


def as_json(table: Comparison) -> dict[str, Any]:
    """The table as plain values."""
    return {
        "caption": table.caption,
        "benchmark": table.benchmark,
        "select": table.select,
        "seeds": list(table.seeds),
        "columns": list(table.columns),
        "rows": [_line_json(line) for line in table.lines],
        "notes": list(table.notes),
        "failures": dict(table.failures),
    }


def _line_json(line: Line) -> dict[str, Any]:
    return {
        "title": line.title,
        "method": line.variant.method,
        "overrides": dict(line.variant.overrides),
        "recipe": dict(line.variant.recipe),
        "paper_row": line.paper.title if line.paper else None,
        "cells": {
            key: {
                "mean": cell.ours.mean,
                "std": cell.ours.deviation,
                "by_seed": {str(seed): value for seed, value in cell.ours.by_seed.items()},
                "failed": cell.ours.failed,
                "paper": cell.paper,
                "paper_mark": {"b": "best", "u": "second"}.get(cell.paper_mark),
                "difference": cell.difference,
                "unit": "1" if key in MEASURES else "%",
                "mark": {"b": "best", "u": "second"}.get(cell.mark),
            }
            for key, cell in line.cells.items()
        },
    }


FORMATS = {"md": markdown, "tex": latex, "csv": csv_text, "json": json_text}
"""By the file's ending."""
