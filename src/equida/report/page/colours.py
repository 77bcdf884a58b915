"""One colour and one marker for each system, the same in every plot of the page.

The hues are those of Okabe and Ito and of Tol's muted scheme, which people with the common kinds of
colour blindness tell apart; the marker says the same once more. Each has a lighter twin for dark
backgrounds.
"""

from collections.abc import Sequence

from equida.report.page.grid import System

FIXED = {
    "source_only": ("#6b7280", "#9ca3af", "circle-open"),
    "max_square": ("#2b8cbe", "#6fc3ee", "square"),
    "bnm": ("#c98500", "#f0b323", "diamond"),
    "cwsm": ("#00866a", "#2bc39b", "triangle-up"),
    "nsm": ("#c8500a", "#f4824a", "circle"),
}
OTHERS = (
    ("#0b5fa5", "#6ea8e6", "cross"),
    ("#b3548e", "#e08fc0", "x"),
    ("#44307e", "#a493e6", "star"),
    ("#5f7a12", "#b3cc5a", "triangle-down"),
    ("#9c3848", "#ea8794", "pentagon"),
    ("#27787c", "#63c3c7", "hexagon"),
    ("#7a5a2e", "#cfa873", "diamond-open"),
    ("#5b6b8c", "#a9b6d3", "square-open"),
)


def styles(systems: Sequence[System]) -> list[dict[str, str]]:
    """Light colour, dark colour and marker of each system, in their order."""
    taken: set[str] = set()
    free = 0
    found = []
    for system in systems:
        if system.method in FIXED and system.method not in taken:
            taken.add(system.method)
            light, dark, marker = FIXED[system.method]
        else:
            light, dark, marker = OTHERS[free % len(OTHERS)]
            free += 1
        found.append({"light": light, "dark": dark, "marker": marker})
    return found
