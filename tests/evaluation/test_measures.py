"""The paper's measures print what the paper prints, and obey what is proved of them."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from equida.evaluation import (
    class_weighted_squares,
    discriminability,
    equity,
    mean_squares,
    normalized_squares,
    nuclear_norm,
)

EXAMPLES = {
    name: torch.eye(2, dtype=torch.float64)[rows]
    for name, rows in {"P1": [0, 0, 0, 0], "P2": [0, 0, 0, 1], "P3": [0, 0, 1, 1]}.items()
}


@pytest.mark.parametrize(
    ("name", "norm", "cws", "ns"),
    [("P1", 2.0, 1.0, 0.25), ("P2", 2.7321, 1.3660, 0.4), ("P3", 2.8284, 1.4142, 0.5)],
)
def test_example_tables(name: str, norm: float, cws: float, ns: float) -> None:
    probs = EXAMPLES[name]
    assert nuclear_norm(probs).item() == pytest.approx(norm, abs=5e-5)
    assert class_weighted_squares(probs).item() == pytest.approx(cws, abs=5e-5)
    for r in (0.3, 0.5, 1.0):
        assert normalized_squares(probs, r=r).item() == pytest.approx(ns)


def test_case_study_of_two_rows() -> None:
    """Same class, different classes, uniform at B = C = 2, from the formulas by hand."""
    same, different = torch.tensor([[1.0, 0.0]] * 2), torch.eye(2)
    uniform = torch.full((2, 2), 0.5)
    for r, expected in {0.5: (0.7071, 1.0, 0.5), 1.0: (0.5, 1.0, 0.5)}.items():
        got = [class_weighted_squares(p, r).item() for p in (same, different, uniform)]
        assert got == pytest.approx(expected, abs=5e-5)
    for r, expected in {0.0: (0.5, 0.5, 1 / 3), 0.5: (0.5, 1, 0.4142), 1.0: (0.5, 1, 0.5)}.items():
        got = [normalized_squares(p, r).item() for p in (same, different, uniform)]
        assert got == pytest.approx(expected, abs=5e-5)


def test_equity_of_published_class_sizes() -> None:
    """VisDA-2017 validation: .709 from its class sizes; all in one class is the least possible."""
    sizes = [3646, 3475, 4690, 10401, 4691, 2075, 5796, 4000, 4549, 2281, 4236, 5548]
    rows = torch.arange(12).repeat_interleave(torch.tensor(sizes))
    assert equity(torch.eye(12)[rows]).item() == pytest.approx(0.709, abs=5e-4)
    assert equity(torch.eye(12)[[0] * 7]).item() == pytest.approx(-1 + 2 / 12)
    assert equity(torch.full((5, 4), 0.25), "soft").item() == pytest.approx(1.0)


def test_equity_refuses_an_unknown_kind() -> None:
    with pytest.raises(ValueError, match="kind is 'firm'; it is 'hard' or 'soft'"):
        equity(torch.eye(2), "firm")  # type: ignore[arg-type]


def test_batch_dimensions() -> None:
    stack = torch.stack([EXAMPLES["P1"], EXAMPLES["P3"]])
    for measure in (nuclear_norm, class_weighted_squares, normalized_squares, equity):
        both = torch.stack([measure(EXAMPLES["P1"]), measure(EXAMPLES["P3"])])
        torch.testing.assert_close(measure(stack), both)


@st.composite
def predictions(draw: st.DrawFn) -> Tensor:
    rows, classes = draw(st.integers(1, 12)), draw(st.integers(2, 10))
    scale = draw(st.sampled_from([0.1, 1.0, 5.0, 50.0]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    logits = scale * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    return logits.softmax(1)


@st.composite
def one_hot_predictions(draw: st.DrawFn) -> Tensor:
    classes = draw(st.integers(2, 10))
    rows = draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=12))
    return torch.eye(classes, dtype=torch.float64)[rows]


@settings(max_examples=60, deadline=None)
@given(predictions())
def test_nuclear_norm_lies_between_cws_and_the_column_norms(probs: Tensor) -> None:
    """C CWS(P; .5) <= ||P||_* <= sum_c sqrt(s_c)."""
    norm = nuclear_norm(probs).item()
    assert probs.shape[1] * class_weighted_squares(probs).item() <= norm + 1e-9
    assert norm <= probs.norm(dim=0).sum().item() + 1e-9


@settings(max_examples=60, deadline=None)
@given(one_hot_predictions())
def test_the_bounds_meet_at_one_hot_rows(probs: Tensor) -> None:
    expected = probs.sum(0).sqrt().sum().item()
    assert nuclear_norm(probs).item() == pytest.approx(expected)
    assert probs.shape[1] * class_weighted_squares(probs).item() == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(predictions(), st.floats(0.01, 1.0), st.floats(0.5, 3.0))
def test_ns_grows_with_r_and_is_bounded(probs: Tensor, r: float, alpha: float) -> None:
    """G <= 1 gives G^r >= G, hence NS_r <= NS_1; and NS <= 1/alpha + eps B."""
    ns = normalized_squares(probs, r, alpha, eps=1e-6).item()
    assert ns <= normalized_squares(probs, 1.0, alpha, eps=1e-6).item() + 1e-12
    assert ns <= 1 / alpha + 1e-6 * len(probs) + 1e-12


@settings(max_examples=60, deadline=None)
@given(predictions(), st.floats(0.5, 3.0))
def test_ns_at_r_1_is_the_sum_of_squared_class_sizes(probs: Tensor, alpha: float) -> None:
    squares = probs.square().sum()
    by_sizes = 1 / (probs.sum(0).square().sum() / squares + alpha - 1)
    torch.testing.assert_close(normalized_squares(probs, 1.0, alpha, eps=0.0), by_sizes)


@settings(max_examples=60, deadline=None)
@given(predictions(), st.floats(0.0, 1.0))
def test_ranges(probs: Tensor, r: float) -> None:
    rows, classes = probs.shape
    assert 1 / classes - 1e-9 <= mean_squares(probs).item() <= 1 + 1e-9
    assert discriminability(probs) == mean_squares(probs)
    assert 0 < class_weighted_squares(probs, r).item() <= (rows / classes) ** (1 - r) + 1e-9
    assert 0 < nuclear_norm(probs).item() <= math.sqrt(rows * min(rows, classes)) + 1e-9
    for kind in ("hard", "soft"):
        assert -1 + 2 / classes - 1e-9 <= equity(probs, kind).item() <= 1 + 1e-9


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_measures_of_half_precision_count_in_full(dtype: torch.dtype) -> None:
    """Before: -inf, and 0.9922 in place of 1."""
    one_class = torch.eye(2)[torch.zeros(70_000, dtype=torch.long)].to(dtype)
    assert float(equity(one_class)) == 0.0
    assert float(equity(torch.eye(3)[torch.arange(999) % 3].to(dtype), "soft")) == 1.0
