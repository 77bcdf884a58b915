"""A study as tables on the terminal."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from equida.paper.theory.checks import Check, CheckVerdict
from equida.paper.theory.examples import MATRICES, PRINTED
from equida.paper.theory.study import TheoryStudy

COLOURS: dict[CheckVerdict, str] = {
    "holds": "green",
    "paper wrong": "bold red",
    "paper silent": "cyan",
    "differs": "bold yellow",
}
TITLES = {
    "case study": "The case study, B = C = 2 (Sec. 3.6)",
    "theorems": "The theorems, by search and enumeration",
    "limits": "Limits of r, eps and alpha; local maxima",
    "identities": "Formulas and inequalities",
    "prior": "With a class prior (ours, not the paper's)",
}


def print_theory(study: TheoryStudy, console: Console) -> None:
    """Print every check with its verdict, and the reason where the paper and the result differ."""
    _print_examples(study, console)
    for section, title in TITLES.items():
        _print_section(study.checks_of(section), title, console)
    _print_complexity(study.checks_of("complexity"), console)
    counts = Counter(check.verdict for check in study.checks)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in COLOURS if counts[verdict])
    console.print(f"{len(study.checks)} checks in {study.seconds:.0f} s: {summary}.")
    for check in study.checks:
        if not check.as_documented:
            console.print(f"[bold red]Not as documented:[/] {check.id}: {escape(check.found)}")


def _print_examples(study: TheoryStudy, console: Console) -> None:
    checks = {
        (check.table, check.row, check.column): check for check in study.checks_of("examples")
    }
    table = Table(title="The example matrices (Tables 1 and 3): computed / printed", expand=False)
    table.add_column("")
    # Table 3 repeats the nuclear norms of Table 1.
    columns = {column: number for number, printed in PRINTED.items() for column in printed}
    for column in columns:
        table.add_column(column, justify="right")
    for name in MATRICES:
        cells = []
        for column, number in columns.items():
            check = checks[number, name, column]
            mark = "" if check.verdict == "holds" else " [bold yellow]*[/]"
            cells.append(f"{check.found} / {check.printed}{mark}")
        table.add_row(name, *cells)
    console.print(table)
    notes = dict.fromkeys(
        check.explanation for check in checks.values() if check.verdict != "holds"
    )
    for note in notes:
        console.print(f"* {escape(note)}")
    console.print()


def _print_section(checks: Sequence[Check], title: str, console: Console) -> None:
    table = Table(title=title, show_lines=True, expand=True)
    table.add_column("claim", ratio=3)
    table.add_column("found", ratio=3)
    table.add_column("verdict", width=12)
    for check in checks:
        claim = f"{escape(check.claim)} [dim]({escape(check.reference)})[/]"
        found = f"{escape(check.found)}\n[dim]tried: {escape(check.tried)}[/]"
        colour = COLOURS[check.verdict]
        table.add_row(
            f"{claim}\n[italic]{escape(check.explanation)}[/]",
            found,
            f"[{colour}]{check.verdict}[/]",
        )
    console.print(table)
    console.print()


def _print_complexity(checks: Sequence[Check], console: Console) -> None:
    table = Table(title="Time (Table 2): measured exponent / the paper's", expand=False)
    for column in ("loss", "Table 2", "over B", "over C"):
        table.add_column(column)
    slopes = [check for check in checks if check.table == 2]
    for name in dict.fromkeys(check.row for check in slopes):
        mine = [check for check in slopes if check.row == name]
        cells = [
            f"{check.found} / {check.printed}" + ("" if check.verdict == "holds" else " *")
            for check in mine
        ]
        table.add_row(name, mine[0].computed["printed_order"], *cells)
    console.print(table)
    for check in slopes:
        if check.verdict != "holds":
            console.print(f"* {check.row} over {check.column}: {escape(check.explanation)}")
    for check in checks:
        if check.table is None:
            claim = f'"{check.claim}" ({check.reference})'
            console.print(f"[{COLOURS[check.verdict]}]{check.verdict}[/]: {escape(claim)}.")
            console.print(escape(f"  {check.found}. {check.explanation}"))
    console.print()
