"""What benchmarks found beside their bars: one line in each table, and one table of all at the end.

A benchmark calls `judged` wherever it has a bar, and shows what that returns; `noted` is for a
floor, or another figure without a bar. `python -m benchmarks` prints `summary()` last.
"""

from typing import NamedTuple

from rich.table import Table


class Found(NamedTuple):
    """A figure of a benchmark; without a bar it neither holds nor misses one."""

    benchmark: str
    what: str
    figure: str
    bar: str = ""
    holds: bool | None = None


FOUND: list[Found] = []


def judged(
    benchmark: str, what: str, value: float, bar: float, unit: str = "", *, least: bool = False
) -> str:
    """The value beside its bar as text for a table, which `summary` shows again.

    Args:
        benchmark: which one.
        what: is measured.
        value: what was found.
        bar: the most that it may be, or the least.
        unit: of both.
        least: whether larger is better.

    >>> judged("demo", "equida / bare loop", 0.9, 0.92), FOUND.pop().holds
    ('0.9 (at most 0.92) [green]holds[/]', True)
    """
    holds = value >= bar if least else value <= bar
    figure, limit = (f"{_digits(number)} {unit}".strip() for number in (value, bar))
    wanted = f"at {'least' if least else 'most'} {limit}"
    FOUND.append(Found(benchmark, what, figure, wanted, holds))
    return f"{figure} ({wanted}) {_mark(holds)}"


def noted(benchmark: str, what: str, figure: str) -> None:
    """Keep a figure without a bar, such as a floor, for `summary`."""
    FOUND.append(Found(benchmark, what, figure))


def summary() -> Table:
    """All that was found, in the order in which it was."""
    table = Table("benchmark", "what", "measured", "bar", "", title="all benchmarks")
    for found in FOUND:
        table.add_row(*found[:4], "" if found.holds is None else _mark(found.holds))
    return table


def _digits(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _mark(holds: bool) -> str:
    return "[green]holds[/]" if holds else "[red]missed[/]"
