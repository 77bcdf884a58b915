"""The case study against its closed forms and the values at its vertices."""

import pytest
import torch

from equida.paper.theory.case_study import PANELS, VERTICES, matrices, surface

# Same class, different classes, undecided; worked out by hand from Eqs. 2, 3, 11 and 27.
EXPECTED = {
    "a": (1.0, 1.0, 0.5),
    "b": (2**-0.5, 1.0, 0.5),
    "c": (1.0, 1.0, 0.5),
    "d": (2**-0.5, 1.0, 0.5),
    "e": (0.5, 1.0, 0.5),
    "f": (0.5, 0.5, 1 / 3),
    "g": (0.5, 1.0, 2**0.5 - 1),
    "h": (0.5, 1.0, 0.5),
}


@pytest.mark.parametrize("panel", PANELS)
def test_values_at_the_vertices_and_in_the_middle(panel: str) -> None:
    measure = PANELS[panel].measure
    same, different, undecided = EXPECTED[panel]
    expected = {"P1": same, "P4": same, "P2": different, "P3": different}
    for name, (p1, p2) in VERTICES.items():
        value = measure(matrices(torch.tensor(p1).double(), torch.tensor(p2).double()))
        assert float(value) == pytest.approx(expected[name])
    middle = torch.tensor(0.5).double()
    assert float(measure(matrices(middle, middle))) == pytest.approx(undecided)


def test_the_surface_of_bnm_is_its_closed_form() -> None:
    p1, p2, value = surface(PANELS["b"].measure, 21)
    squares = p1**2 + (1 - p1) ** 2 + p2**2 + (1 - p2) ** 2
    torch.testing.assert_close(value, (squares + 2 * (p1 - p2).abs()).sqrt() / 2)
