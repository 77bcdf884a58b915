"""The picture of the house: its rooms in layers, and who imports whom, read from the code."""

import ast
from pathlib import Path

from sphinx.application import Sphinx

import equida

ROOT = Path(equida.__file__).parent
# From the ground up; a room stands on those below it.
LAYERS = [
    ["distributed", "data", "evaluation"],
    ["losses", "alignment", "models", "clustering"],
    ["methods"],
    ["training"],
    ["runs"],
    ["estimator", "experiments"],
    ["scorers", "report"],
    ["paper"],
    ["api"],
    ["cli"],
]
UPWARD = {("runs", "report"), ("report", "paper")}
"""The two imports that point upwards; what follows from others is found without them."""


def imports() -> set[tuple[str, str]]:
    """Pairs (room, room that it imports), also of imports inside functions."""
    rooms = {room for layer in LAYERS for room in layer}
    found = set()
    for path in ROOT.rglob("*.py"):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("equida."):
                other = str(node.module).split(".")[1]
                if {room, other} <= rooms and room != other:
                    found.add((room, other))
    return found


def direct(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The pairs that do not follow from others: a, b is left out where a reaches b another way."""

    def reaches(start: str, end: str, without: tuple[str, str]) -> bool:
        seen, todo = {start}, [start]
        while todo:
            room = todo.pop()
            for other in {b for a, b in pairs if a == room and (a, b) != without} - seen:
                if other == end:
                    return True
                seen.add(other)
                todo.append(other)
        return False

    return {pair for pair in pairs if not reaches(*pair, without=pair)}


def draw(file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    places = {}
    for height, layer in enumerate(LAYERS):
        for number, room in enumerate(layer):
            places[room] = (2.0 * (number - (len(layer) - 1) / 2), 1.2 * height)
    figure, axes = plt.subplots(figsize=(8.5, 8.5))
    found = imports()
    height = {room: number for number, layer in enumerate(LAYERS) for room in layer}
    assert {(a, b) for a, b in found if height[a] <= height[b]} == UPWARD, "a room has moved"
    for room, other in sorted(direct(found - UPWARD) | UPWARD):
        (x, y), (to_x, to_y) = places[room], places[other]
        bend = 0.12 if x >= to_x else -0.12
        axes.annotate(
            "",
            (to_x, to_y + (0.24 if to_y < y else -0.24)),
            (x, y - (0.24 if to_y < y else -0.24)),
            arrowprops={
                "arrowstyle": "->",
                "color": "#8a9aa8",
                "lw": 0.8,
                "connectionstyle": f"arc3,rad={bend}",
            },
        )
    for room, (x, y) in places.items():
        box = {"boxstyle": "round,pad=0.4", "facecolor": "#e3eef6", "edgecolor": "#1f5f8b"}
        axes.text(x, y, room, ha="center", va="center", fontsize=10, bbox=box)
    axes.set_xlim(-5.2, 5.2)
    axes.set_ylim(-0.7, 1.2 * len(LAYERS) - 0.5)
    axes.axis("off")
    figure.savefig(file, format="svg", bbox_inches="tight")
    plt.close(figure)


def make_picture(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "_generated"
    folder.mkdir(exist_ok=True)
    draw(folder / "rooms.svg")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", make_picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
