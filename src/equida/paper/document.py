"""A study of the paper as Markdown, as JSON, and as a summary on the terminal."""

import json
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from equida.data.benchmarks import BENCHMARKS
from equida.errors import counted
from equida.paper.items import PaperItem
from equida.paper.study import PaperStudy
from equida.paper.verdicts import Verdict
from equida.runs.entry import selection_phrase
from equida.runs.formats import as_json, markdown, signed
from equida.runs.group import RunGroup

COLOURS = {"holds": "green", "does not hold": "bold red", "undecided": "yellow"}
HEAD = ("claim", "data", "verdict", "difference", "95 % interval", "p", "tasks", "seeds", "paper")
SIGN_NOTE = (
    "A difference is the first system minus the second; for equity and discriminability it is r=1"
    " minus r=0.5, so that it is negative for what goes down."
)
TEST_NOTE = (
    "A claim holds where the 95 % interval of the mean difference (paired t over pairs of task and"
    " seed) is on the claimed side of 0 and Wilcoxon's signed ranks agree (two-sided p < 0.05),"
    " does not hold where both say the opposite, and is undecided otherwise. Fewer than six pairs"
    " can never reach p < 0.05 and are called too few. Pairs of one task are not independent of"
    " each other, and p is not corrected for the number of claims: read it with the count of tasks"
    " beside it."
)


def paper_markdown(study: PaperStudy) -> str:
    """The whole document."""
    parts = ["# The paper beside these runs", "", _basis(study), ""]
    parts += [
        "## Do the paper's claims hold here?",
        "",
        f"{TEST_NOTE} {SIGN_NOTE}",
        "",
        *_verdict_rows(study.verdicts),
        "",
    ]
    commands = commands_for_pairs(study.verdicts)
    if commands:
        parts += ["The claims with too few pairs need these runs:", ""]
        parts += ["```sh", *commands, "```", ""]
    parts += ["## What there is", "", "| | status |", "| --- | --- |"]
    parts += [f"| {item.title} | {item.status} |" for item in study.items]
    for item in study.items:
        parts += ["", f"## {item.title}", "", *_item_lines(item)]
    return "\n".join(parts) + "\n"


def _basis(study: PaperStudy) -> str:
    """Which runs count, as a list."""
    lines = [f"- {group.title}: {_runs_phrase(group)}." for group in study.used.values()]
    lines += [
        f"- Left out on {group.title}: {_runs_phrase(group)}. They have other data, another"
        " network or another recipe, and cannot be in the same table."
        for group in study.left_out
    ]
    return "\n".join([*lines, f"- Of each run, {selection_phrase(study.select)} counts."])


def _runs_phrase(group: RunGroup) -> str:
    """How many finished runs there are, and of which network where all have the same."""
    words = counted(len(group.finished), "finished run")
    return f"{words}, {group.network}" if group.network else words


def _item_lines(item: PaperItem) -> list[str]:
    lines = [f"Status: {item.status}."]
    lines += [f"- {remark}" for remark in item.remarks]
    if item.command:
        lines += ["", "To make it:", "", "```sh", item.command, "```"]
    for table in item.tables:
        lines += ["", markdown(table).rstrip()]
    for text in item.texts:
        lines += ["", text]
    lines += [f"\n![{item.title}]({file})" for file in item.figures if file.endswith(".png")]
    return lines


def commands_for_pairs(verdicts: Sequence[Verdict]) -> list[str]:
    """The commands that make enough pairs for a verdict, each once."""
    return list(dict.fromkeys(verdict.command for verdict in verdicts if verdict.command))


def _verdict_rows(verdicts: Sequence[Verdict]) -> list[str]:
    rows = [_cells(verdict) for verdict in verdicts]
    text = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    return text + ["| " + " | ".join([*row[:2], f"**{row[2]}**", *row[3:]]) + " |" for row in rows]


def _cells(verdict: Verdict) -> list[str]:
    digits = 1 if verdict.unit else 3
    printed = "" if verdict.printed is None else signed(verdict.printed, digits)
    first = [verdict.claim, BENCHMARKS[verdict.benchmark].title, verdict.outcome_phrase]
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
    """The whole document for programs."""
    record = {
        "select": study.select,
        "items": [_item_json(item) for item in study.items],
        "verdicts": [_verdict_json(verdict) for verdict in study.verdicts],
        "theory": dict(study.theory) if study.theory else None,
    }
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _item_json(item: PaperItem) -> dict[str, Any]:
    return {
        "name": item.name,
        "title": item.title,
        "status": item.status,
        "have": item.have,
        "need": item.need,
        "seeds": list(item.seeds) if item.seeds else None,
        "command": item.command or None,
        "tables": [as_json(table) for table in item.tables],
        "figures": list(item.figures),
        "remarks": list(item.remarks),
        **item.data,
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


def print_paper(study: PaperStudy, console: Console) -> None:
    """Print which claims hold, which items there are, and how to make the rest."""
    for line in _basis(study).splitlines():
        console.print(Text(line.removeprefix("- ")))
    title = "Do the paper's claims hold here?"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, caption=SIGN_NOTE)
    for name in HEAD:
        table.add_column(name, no_wrap=name not in ("claim", "verdict", "paper"))
    for verdict in study.verdicts:
        cells = _cells(verdict)
        table.add_row(
            *cells[:2], Text(cells[2], style=COLOURS.get(verdict.outcome, "dim")), *cells[3:]
        )
    if study.verdicts:
        console.print(table)
    else:
        console.print("None of the paper's claims can be tested on these runs.")
    for command in commands_for_pairs(study.verdicts):
        console.print(Text(f"for enough pairs: {command}", style="dim"), soft_wrap=True)
    width = max(len(item.status) for item in study.items)
    for item in study.items:
        style = "green" if item.complete else "yellow" if item.have else "red"
        console.print(Text.assemble((f"{item.status:>{width}}  ", style), item.title))
        for command in item.command.splitlines():
            console.print(Text(" " * (width + 2) + command, style="dim"), soft_wrap=True)
