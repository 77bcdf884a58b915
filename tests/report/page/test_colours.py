import colorsys
from itertools import combinations

from equida.methods import METHODS
from equida.report.page.colours import FIXED, MARKERS, styles


def look(style: dict[str, str]) -> tuple[str, str, str]:
    return style["light"], style["dark"], style["marker"]


def hue(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    return colorsys.rgb_to_hls(*parts)[0]


def test_variants_are_shades_of_their_method_with_markers_of_their_own() -> None:
    counts = {"source_only": 1, "cwsm": 13, "nsm": 13, "dann": 2}
    methods = [method for method, count in counts.items() for _ in range(count)]
    made = styles(methods)
    for one, other in combinations(zip(methods, made, strict=True), 2):
        assert one[1]["light"] != other[1]["light"]
        assert one[1]["dark"] != other[1]["dark"]
        if one[0] == other[0]:
            assert one[1]["marker"] != other[1]["marker"]
            assert abs(hue(one[1]["light"]) - hue(other[1]["light"])) < 0.02
    assert look(made[0]) == FIXED["source_only"]
    assert {style["marker"] for style in made} <= set(MARKERS)


def test_every_method_looks_different() -> None:
    made = styles(list(METHODS))
    assert len(made) > 13
    assert len({style["light"] for style in made}) == len(made)
    assert len({style["dark"] for style in made}) == len(made)
