"""One colour and one marker for each system, the same in every plot of the page.

A method has a hue and its variants are shades of it, each with a marker of its own. The hues are
those of Okabe and Ito and of Tol's muted scheme, which people with the common kinds of colour
blindness tell apart; the marker says the same once more. Each has a lighter twin for dark
backgrounds.
"""

import colorsys
from collections import Counter
from collections.abc import Sequence

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


SHAPES = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "cross",
    "x",
    "star",
    "triangle-down",
    "pentagon",
    "hexagon",
)
MARKERS = (*SHAPES, *(f"{shape}-open" for shape in SHAPES))
RAMP = (-0.4, 0.45)
"""How far the first variant of a method is mixed with black, and the last with white."""


def styles(methods: Sequence[str]) -> list[dict[str, str]]:
    """Light colour, dark colour and marker of each system, of which `methods` are the methods."""
    variants = Counter(methods)
    others = [method for method in variants if method not in FIXED]
    bases = FIXED | {method: _other(place) for place, method in enumerate(others)}
    seen: Counter[str] = Counter()
    found = []
    for method in methods:
        light, dark, marker = bases[method]
        count, place = variants[method], seen[method]
        seen[method] += 1
        if count > 1:
            share = RAMP[0] + (RAMP[1] - RAMP[0]) * place / (count - 1)
            light, dark = _mixed(light, share), _mixed(dark, share)
            marker = MARKERS[(MARKERS.index(marker) + place) % len(MARKERS)]
        found.append({"light": light, "dark": dark, "marker": marker})
    return found


def _other(place: int) -> tuple[str, str, str]:
    """The look of a method that has none of its own; beyond the chosen hues, one in between."""
    if place < len(OTHERS):
        return OTHERS[place]
    hue = place * 0.381966 % 1.0
    return _hex(hue, 0.36), _hex(hue, 0.7), MARKERS[place % len(MARKERS)]


def _hex(hue: float, lightness: float) -> str:
    parts = colorsys.hls_to_rgb(hue, lightness, 0.5)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def _mixed(colour: str, share: float) -> str:
    """A colour mixed with white, or with black where the share is negative.

    >>> _mixed("#804020", 0.5), _mixed("#804020", -0.5)
    ('#c0a090', '#402010')
    """
    goal = 255 if share > 0 else 0
    parts = [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
    mixed = [round(part + abs(share) * (goal - part)) for part in parts]
    return "#" + "".join(f"{part:02x}" for part in mixed)
