"""Whether adaptation may have hurt, from predictions alone."""

import pytest
import torch
from torch import Tensor

from equida.evaluation.harm import check_harm


def predictions(counts: list[int], sure: float = 50.0) -> Tensor:
    """Log-probabilities whose most likely classes have these counts, in order."""
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return (sure * torch.eye(len(counts))[labels]).log_softmax(1)


UNEVEN, EVEN = predictions([70, 20, 5, 5]), predictions([25, 25, 25, 25])


@pytest.mark.parametrize(
    ("imbalance", "after", "levelled"),
    [(0.3, EVEN, True), (0.05, EVEN, False), (0.3, UNEVEN, False)],
)
def test_sizes_were_levelled_on_a_target_that_looks_imbalanced(
    imbalance: float, after: Tensor, levelled: bool
) -> None:
    check = check_harm(UNEVEN, after, imbalance)
    assert check.levelled == levelled
    assert check.source_only["equity"] == pytest.approx(1 - 0.9)  # .45 + .05 + .2 + .2
    # Rows 0 to 24 and 95 to 99 keep their class.
    assert check.moved == pytest.approx(0.7 if after is EVEN else 0.0)


def test_a_collapse_is_sure_and_leaves_classes_out() -> None:
    collapsed = predictions([100, 0, 0, 0])
    assert check_harm(EVEN, collapsed, 0.0).collapsed
    assert not check_harm(EVEN, collapsed, 0.3).collapsed  # there may be no other classes
    assert not check_harm(EVEN, predictions([100, 0, 0, 0], sure=0.5), 0.0).collapsed
    assert not check_harm(collapsed, collapsed, 0.0).collapsed
    assert not check_harm(UNEVEN, EVEN, 0.0).collapsed


def test_how_many_moved_is_told_and_raises_no_alarm() -> None:
    check = check_harm(EVEN, EVEN.roll(10, 0), 0.0)
    assert check.moved == pytest.approx(0.4)  # ten rows at each of four borders
    assert not check.levelled
    assert not check.collapsed
    assert set(check.adapted) == set(check.source_only) >= {"equity", "bnm", "entropy"}
