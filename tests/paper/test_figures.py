"""Sample images and t-SNE."""

from pathlib import Path

import pytest

from equida.paper.figures import palette
from equida.paper.study import paper_study


@pytest.mark.slow(reason="draws many photographs")
def test_samples_of_every_domain(office31: Path, paper_runs: Path, tmp_path: Path) -> None:
    found = paper_study([], [paper_runs], tmp_path, images={"office31": str(office31)})
    assert found.items[1].status == "1 of 3"
    assert (tmp_path / "samples-office31.png").stat().st_size > 20_000


def test_as_many_colours_as_classes_are_told_apart() -> None:
    assert len({tuple(colour) for colour in palette(65).round(3).tolist()}) == 65
