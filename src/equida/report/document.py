"""What `equida paper` writes and prints: Markdown, JSON, a summary on the terminal."""

import json
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from equida.data.benchmarks import BENCHMARKS
from equida.report.exhibit import Exhibit
from equida.report.formats import as_json, markdown, signed
from equida.report.study import PaperStudy
from equida.report.tables import SELECTED
from equida.report.verdicts import Verdict

COLOURS = {"holds": "green", "does not hold": "bold red", "undecided": "yellow"}
SIGN = (
    "A difference is of the first named minus the second; of equity and discriminability it is r=1"
    " minus r=0.5, so that what goes down is negative."
)
HOW = (
    "A claim holds where the 95 % interval of the mean difference (paired t over pairs of task and"
    " seed) is on the claimed side of 0 and Wilcoxon's signed ranks agree (two-sided p < 0.05),"
    " does not hold where both say the opposite, and is undecided otherwise. Fewer than six pairs"
    " can never reach p < 0.05 and are called too few. Pairs of one task are not independent of"
    " each other, and p is not corrected for the number of claims: read it with the count of tasks"
    " beside it."
)


def paper_markdown(study: PaperStudy) -> str:
    """The whole document."""
    parts = ["# The paper, and what these runs give", "", _basis(study), ""]
    parts += [
        "## Do the paper's claims hold here?",
        "",
        f"{HOW} {SIGN}",
        "",
        *_verdict_rows(study.verdicts),
        "",
    ]
    commands = deciding(study.verdicts)
    if commands:
        parts += ["What is without enough pairs needs these runs:", ""]
        parts += ["```sh", *commands, "```", ""]
    parts += ["## What there is", "", "| | status |", "| --- | --- |"]
    parts += [f"| {exhibit.title} | {exhibit.status} |" for exhibit in study.exhibits]
    for exhibit in study.exhibits:
        parts += ["", f"## {exhibit.title}", "", *_exhibit_lines(exhibit)]
    return "\n".join(parts) + "\n"


def _basis(study: PaperStudy) -> str:
    lines = []
    for name, setting in study.used.items():
        title = BENCHMARKS[name].title
        lines.append(f"- {title}: {setting.finished} finished runs, {setting.network}.")
    lines += [
        f"- Left out: {s.finished} runs on {BENCHMARKS[s.benchmark].title}, {s.network}, of another"
        " recipe or network, which cannot be in the same table."
        for s in study.left_out
    ]
    shown = SELECTED.get(study.select, f"the step that {study.select} (label-free) picks")
    return "\n".join([*lines, f"- Of each run: {shown}."])


def _exhibit_lines(exhibit: Exhibit) -> list[str]:
    lines = [f"Status: {exhibit.status}."]
    lines += [f"- {remark}" for remark in exhibit.remarks]
    if exhibit.command:
        lines += ["", "To make it:", "", "```sh", exhibit.command, "```"]
    for table in exhibit.tables:
        lines += ["", markdown(table).rstrip()]
    for text in exhibit.texts:
        lines += ["", text]
    lines += [f"\n![{exhibit.title}]({file})" for file in exhibit.figures if file.endswith(".png")]
    return lines


def deciding(verdicts: Sequence[Verdict]) -> list[str]:
    """The commands that make enough pairs, each once."""
    return list(dict.fromkeys(verdict.command for verdict in verdicts if verdict.command))


def _verdict_rows(verdicts: Sequence[Verdict]) -> list[str]:
    head = (
        "claim",
        "data",
        "verdict",
        "difference",
        "95 % interval",
        "p",
        "tasks",
        "seeds",
        "paper",
    )
    rows = [_cells(verdict) for verdict in verdicts]
    text = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return text + ["| " + " | ".join([*row[:2], f"**{row[2]}**", *row[3:]]) + " |" for row in rows]


def _cells(verdict: Verdict) -> list[str]:
    digits = 1 if verdict.unit else 3
    printed = "" if verdict.printed is None else signed(verdict.printed, digits)
    first = [verdict.claim, BENCHMARKS[verdict.benchmark].title, verdict.said]
    test = verdict.test
    if test is None:
        return [*first, "", "", "", "", "", printed]
    interval = test.interval
    between = "" if interval is None else " to ".join(signed(x, digits) for x in interval)
    p = "" if test.p is None else f"{test.p:.2g}"
    tasks = f"{verdict.tasks_for} of {verdict.tasks}"
    difference = signed(test.difference, digits)
    return [*first, difference, between, p, tasks, str(verdict.seeds), printed]


def paper_json(study: PaperStudy) -> str:
    """The same for programs."""
    record = {
        "select": study.select,
        "exhibits": [_exhibit_json(exhibit) for exhibit in study.exhibits],
        "verdicts": [_verdict_json(verdict) for verdict in study.verdicts],
        "theory": dict(study.theory) if study.theory else None,
    }
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _exhibit_json(exhibit: Exhibit) -> dict[str, Any]:
    return {
        "name": exhibit.name,
        "title": exhibit.title,
        "status": exhibit.status,
        "have": exhibit.have,
        "need": exhibit.need,
        "seeds": list(exhibit.seeds) if exhibit.seeds else None,
        "command": exhibit.command or None,
        "tables": [as_json(table) for table in exhibit.tables],
        "figures": list(exhibit.figures),
        "remarks": list(exhibit.remarks),
        **exhibit.data,
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    test = verdict.test
    return {
        "claim": verdict.claim,
        "benchmark": verdict.benchmark,
        "verdict": verdict.outcome,
        "unit": verdict.unit or "1",
        "claimed": None if test is None else "below 0" if test.downward else "above 0",
        "difference": test.difference if test else None,
        "interval": list(test.interval) if test and test.interval else None,
        "p": test.p if test else None,
        "pairs": test.pairs if test else 0,
        "tasks": verdict.tasks,
        "tasks_for": verdict.tasks_for,
        "seeds": verdict.seeds,
        "paper": verdict.printed,
        "command": verdict.command or None,
    }


def print_study(study: PaperStudy, console: Console) -> None:
    """What holds, what is there, and how to make the rest."""
    for line in _basis(study).splitlines():
        console.print(Text(line.removeprefix("- ")))
    title = "Do the paper's claims hold here?"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, caption=SIGN)
    for name in ("claim", "data", "verdict", "difference", "95 % interval", "p", "tasks", "seeds"):
        table.add_column(name, no_wrap=name not in ("claim", "verdict"))
    table.add_column("paper")
    for verdict in study.verdicts:
        cells = _cells(verdict)
        table.add_row(
            *cells[:2], Text(cells[2], style=COLOURS.get(verdict.outcome, "dim")), *cells[3:]
        )
    console.print(table)
    for command in deciding(study.verdicts):
        console.print(Text(f"for enough pairs: {command}", style="dim"), soft_wrap=True)
    width = max(len(exhibit.status) for exhibit in study.exhibits)
    for exhibit in study.exhibits:
        style = "green" if exhibit.complete else "yellow" if exhibit.have else "red"
        console.print(Text.assemble((f"{exhibit.status:>{width}}  ", style), exhibit.title))
        for command in exhibit.command.splitlines():
            console.print(Text(" " * (width + 2) + command, style="dim"), soft_wrap=True)
