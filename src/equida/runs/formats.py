"""A table of results as Markdown, LaTeX, CSV, JSON, HTML and a pandas DataFrame."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from html import escape as escape_html
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equida.errors import InputError, require
from equida.fields import checked_value
from equida.methods.aiming import MARKED_ORACLE

if TYPE_CHECKING:
    from equida.runs.read import Run
    from equida.runs.table import Cell, Column, Row, Table

MINUS = "−"
MISSING = "–"
MARKDOWN = {1: "**{}**", 2: "<u>{}</u>"}
MOST_COLUMNS = 9
"""A block of a LaTeX table has so many at most: Office-31 with equity and discriminability."""
LATEX = {1: r"\textbf{{{}}}", 2: r"\underline{{{}}}"}
HTML = {1: "<b>{}</b>", 2: "<u>{}</u>"}
RANKS = {1: "best", 2: "second"}


def ours(cell: "Cell", column: "Column", seeds: int) -> str:
    """Our figure with its deviation, and the number of seeds where it is not all of them."""
    if cell.mean is None:
        return "failed" if cell.failed else MISSING
    text = f"{cell.mean:.{column.digits}f}"
    if cell.deviation is not None:
        text += f" ± {cell.deviation:.{column.digits}f}"
    return text + (f" ({cell.count}/{seeds})" if cell.count < seeds else "")


def beside(cell: "Cell", column: "Column", style: Mapping[int, str] | None = None) -> str:
    """The published figure, set by its rank as `style` says, and ours minus it; "" without one."""
    if cell.printed is None:
        return ""
    text = emphasized(f"{cell.printed.value:.{column.digits}f}", cell.printed.rank, style or {})
    if cell.difference is None:
        return text
    return f"{text} {signed(cell.difference, column.digits)}"


def emphasized(text: str, rank: int, style: Mapping[int, str]) -> str:
    """The text as its rank is set."""
    return style.get(rank, "{}").format(text)


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign.

    >>> signed(-0.04), signed(-1.25), signed(0.3)
    ('0.0', '−1.2', '+0.3')
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", MINUS)


def markdown(table: "Table") -> str:
    """The table with a line of the published figures below each of ours, and the notes."""
    rows = [["Method", *(column.title for column in table.columns)]]
    for row in table.rows:
        rows.append([row.title, *_set(row, table, MARKDOWN)])
        if row.printed:
            printed = [beside(row.cells[c.key], c, MARKDOWN) for c in table.columns]
            rows.append([f"*paper: {_text(row.printed.title)}*", *printed])
    text = [_markdown_row(rows[0]), "|" + " --- |" + " ---: |" * len(table.columns)]
    text += [_markdown_row(row) for row in rows[1:]]
    notes = [f"- {_text(note)}" for note in _remarks(table)]
    return "\n".join([_text(table.caption), "", *text, "", *notes, ""])


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _set(row: "Row", table: "Table", style: Mapping[int, str]) -> list[str]:
    """Our figures of a row, the best and the second of a column set as the style says."""
    cells = [(row.cells[column.key], column) for column in table.columns]
    return [emphasized(ours(cell, c, len(table.seeds)), cell.rank, style) for cell, c in cells]


def _text(text: str) -> str:
    return text.replace("*", "\\*").replace("_", "\\_")


def _remarks(table: "Table") -> list[str]:
    return [*table.notes, *(f"Failed: {run}: {reason}" for run, reason in table.failures.items())]


def latex(table: "Table") -> str:
    """A table for a paper, no wider than its text; needs the packages booktabs and graphicx.

    More columns than `MOST_COLUMNS` come in blocks below each other, all in smaller type, because
    one block would have to be shrunk until nobody can read it.
    """
    columns = table.columns
    count = -(-len(columns) // MOST_COLUMNS)
    size = -(-len(columns) // count)
    blocks = [columns[start : start + size] for start in range(0, len(columns), size)]
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


def _latex_block(table: "Table", columns: Sequence["Column"], small: str) -> str:
    """Some columns, shrunk to the width of the text where they are wider."""
    head = ["Method", *(escape(column.title) for column in columns)]
    body = []
    for row in table.rows:
        cells = [_latex_cell(row.cells[c.key], c, table) for c in columns]
        body.append(" & ".join([escape(row.title), *cells]) + r" \\")
        if row.printed:
            body.append(_latex_printed(row, columns, small))
    return "\n".join(
        [
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
        ]
    )


def _latex_cell(cell: "Cell", column: "Column", table: "Table") -> str:
    text = escape(ours(cell, column, len(table.seeds))).replace(r" $\pm$ ", r"\,$\pm$\,")
    return emphasized(text, cell.rank, LATEX)


def _latex_printed(row: "Row", columns: Sequence["Column"], small: str) -> str:
    assert row.printed is not None
    cells = [beside(row.cells[c.key], c, LATEX).replace(MINUS, "$-$") for c in columns]
    printed = [rf"{{{small}{text}}}" if text else "" for text in cells]
    title = rf"\quad{{{small}paper: {escape(row.printed.title)}}}"
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


def csv_text(table: "Table") -> str:
    """One line for each figure, for programs."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    fields = ("method", "row", "column", "mean", "std", "seeds", "paper", "difference", "mark")
    writer.writerow((*fields, "select"))
    for row in table.rows:
        for key, cell in row.cells.items():
            mean, deviation, difference = (
                "" if number is None else f"{number:.4f}"
                for number in (cell.mean, cell.deviation, cell.difference)
            )
            printed = "" if cell.printed is None else f"{cell.printed.value:.4g}"
            rank = RANKS.get(cell.rank, "")
            found = (mean, deviation, cell.count, printed, difference, rank, table.select)
            writer.writerow((row.variant.method, row.title, key, *found))
    return file.getvalue()


def json_text(table: "Table") -> str:
    """Everything that the table knows, with the figure of every seed."""
    return json.dumps(as_json(table), indent=1, ensure_ascii=False) + "\n"


def as_json(table: "Table") -> dict[str, Any]:
    """The table as plain values."""
    return {
        "caption": table.caption,
        "benchmark": table.benchmark,
        "select": table.select,
        "seeds": list(table.seeds),
        "columns": [column.key for column in table.columns],
        "rows": [_row_json(row, table) for row in table.rows],
        "notes": list(table.notes),
        "failures": dict(table.failures),
    }


def _row_json(row: "Row", table: "Table") -> dict[str, Any]:
    return {
        "title": row.title,
        "method": row.variant.method,
        "overrides": dict(row.variant.overrides),
        "recipe": dict(row.variant.recipe),
        "paper_row": row.printed.title if row.printed else None,
        "cells": {c.key: _cell_json(row.cells[c.key], c) for c in table.columns},
    }


def _cell_json(cell: "Cell", column: "Column") -> dict[str, Any]:
    printed = cell.printed
    return {
        "mean": cell.mean,
        "std": cell.deviation,
        "by_seed": {str(seed): value for seed, value in cell.by_seed.items()},
        "failed": cell.failed,
        "paper": printed.value if printed else None,
        "paper_mark": RANKS.get(printed.rank) if printed else None,
        "difference": cell.difference,
        "unit": "%" if column.accuracy else "1",
        "mark": RANKS.get(cell.rank),
    }


def html(table: "Table") -> str:
    """The table for a notebook."""
    head = "".join(f"<th>{escape_html(c.title)}</th>" for c in table.columns)
    lines = [f"<caption>{escape_html(table.caption)}</caption>", f"<tr><th>Method</th>{head}</tr>"]
    for row in table.rows:
        cells = "".join(f"<td>{text}</td>" for text in _set(row, table, HTML))
        lines.append(f"<tr><th>{escape_html(row.title)}</th>{cells}</tr>")
        if row.printed:
            printed = "".join(
                f"<td><small>{beside(row.cells[c.key], c, HTML)}</small></td>"
                for c in table.columns
            )
            title = f"<th><small>paper: {escape_html(row.printed.title)}</small></th>"
            lines.append(f"<tr>{title}{printed}</tr>")
    notes = "".join(f"<li>{escape_html(note)}</li>" for note in _remarks(table))
    return f"<table>{''.join(lines)}</table><ul>{notes}</ul>"


def html_table(caption: str, rows: Sequence[Sequence[str]]) -> str:
    """A small table for a notebook; the first row is its heading."""
    tags = ("th", *["td"] * (len(rows) - 1))
    lines = [
        "".join(f"<{tag}>{escape_html(cell)}</{tag}>" for cell in row)
        for tag, row in zip(tags, rows, strict=True)
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{escape_html(caption)}</caption>{body}</table>"


def pick_rows(run: "Run") -> list[tuple[str, ...]]:
    """The evaluations of a finished run that selections choose, below a heading; the last first.

    Where another step than the last was kept, its row says that `predict` uses its weights.
    """
    labelled, titles = run.accuracy is not None, {"last": "last step", "oracle": MARKED_ORACLE}
    metric = [run.metric.replace("_", " ")] if labelled else []
    rows = [("selected by", "step", *metric, "equity", "discriminability")]
    for name, pick in run.picks.items():
        title = titles.get(name, name.replace("_", " "))
        title += " (kept: predict uses it)" if name == run.kept != "last" else ""
        accuracy = "" if pick.accuracy is None else f"{100 * pick.accuracy:.1f} %"
        figures = (f"{pick.equity:.3f}", f"{pick.discriminability:.3f}")
        rows.append((title, str(pick.step), *([accuracy] if labelled else []), *figures))
    return rows


def frame(table: "Table") -> Any:
    """A pandas DataFrame: rows by title, columns by (column, mean / std / seeds)."""
    pandas = require("pandas", "a DataFrame needs pandas", "pandas")
    parts = (("mean", "mean", float), ("std", "deviation", float), ("seeds", "count", int))
    data = {
        (column.title, what): np.array(
            [getattr(row.cells[column.key], name) for row in table.rows], dtype
        )
        for column in table.columns
        for what, name, dtype in parts
    }
    return pandas.DataFrame(data, index=pandas.Index([r.title for r in table.rows], name="method"))


def written(text: str, file: str | Path | None) -> str:
    """The text, also in a file where one is named."""
    if file is not None:
        try:
            Path(checked_value(file, str | Path, "file")).write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"cannot write {file}: {error.strerror}; choose another file"
            ) from None
    return text


FORMATS = {"md": markdown, "tex": latex, "csv": csv_text, "json": json_text}
"""By the file's ending."""
