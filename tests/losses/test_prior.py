"""Losses that aim at given shares of the classes: values, gradients, and where the minimum lies.

Values and gradients are compared with mpmath, from formulas written a second time. Over one-hot
matrices the losses depend on the class sizes alone, so that every way to share B rows among C
classes can be tried; the expected optimum is computed from the sizes, not from the losses.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from torch import Tensor

from equida.losses import bnm, cwsm, fbnm, information_maximization, nsm

Loss = Callable[..., Tensor]

PRIOR = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
BATCH = 20
AIMING: dict[str, Loss] = {
    "cwsm": cwsm,
    "nsm": nsm,
    "nsm r=0.1": partial(nsm, r=0.1),
    "nsm r=1": partial(nsm, r=1.0),
    "bnm": bnm,
    "fbnm": fbnm,
    "information_maximization": information_maximization,
}
every_loss = pytest.mark.parametrize("loss", AIMING.values(), ids=AIMING)


def one_hot_logits(sizes: tuple[int, ...]) -> Tensor:
    rows = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return torch.eye(len(sizes), dtype=torch.float64)[rows] * 800


def best_sizes(loss: Callable[[Tensor], Tensor]) -> tuple[int, ...]:
    shares = [
        (a, b, BATCH - a - b)
        for a, b in itertools.product(range(BATCH + 1), repeat=2)
        if a + b <= BATCH
    ]
    return min(shares, key=lambda sizes: loss(one_hot_logits(sizes)).item())


@pytest.mark.parametrize(
    "loss",
    [partial(cwsm, r=0.25), cwsm, partial(cwsm, r=0.75), bnm, fbnm, information_maximization],
)
def test_sizes_in_proportion_to_the_prior_are_best(loss: Loss) -> None:
    assert best_sizes(partial(loss, prior=PRIOR)) == (10, 6, 4)
    assert best_sizes(loss) in {(7, 7, 6), (7, 6, 7), (6, 7, 7)}


@pytest.mark.parametrize("r", [0.1, 0.5, 1.0])
def test_nsm_aims_at_sizes_less_one_half_in_proportion_to_the_prior(r: float) -> None:
    """Minimising sum_c n_c (n_c - 1) / q_c gives n_c = 1/2 + (B - C/2) q_c, whatever r is."""
    continuous = 0.5 + (BATCH - len(PRIOR) / 2) * PRIOR
    found = torch.tensor(best_sizes(partial(nsm, r=r, prior=PRIOR)))
    assert (found - continuous).abs().max() < 1


@pytest.mark.parametrize("r", [0.1, 0.5, 1.0])
def test_random_batches_cost_nsm_least_at_the_prior_itself(r: float) -> None:
    """The mean of O over all batches of 4 rows, weighted by how likely shares p make them."""
    rows, steps = 4, 20
    every = [s for s in itertools.product(range(rows + 1), repeat=3) if sum(s) == rows]
    # One-hot: S = B and alpha = 1, so that the loss is -B / (O + B).
    costs = [-rows / nsm(one_hot_logits(s), r, prior=PRIOR).item() - rows for s in every]

    def expected(p: Sequence[float]) -> float:
        total = 0.0
        for sizes, cost in zip(every, costs, strict=True):
            likely = float(mpmath.factorial(rows))
            for share, size in zip(p, sizes, strict=True):
                likely *= share**size / float(mpmath.factorial(size))
            total += likely * cost
        return total

    grid = [
        (a / steps, b / steps, (steps - a - b) / steps)
        for a in range(steps + 1)
        for b in range(steps + 1 - a)
    ]
    assert min(grid, key=expected) == (0.5, 0.3, 0.2)


@every_loss
def test_one_hot_rows_stay_optimal_with_a_prior(loss: Loss) -> None:
    """Ascent from random starts ends at one-hot rows, never above the best of them."""
    best = min(
        loss(one_hot_logits((a, b, 6 - a - b)), prior=PRIOR).item()
        for a in range(7)
        for b in range(7 - a)
    )
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 6, 3, generator=generator, dtype=torch.float64).requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=0.3)
    for _ in range(150):
        optimizer.zero_grad()
        values = torch.vmap(partial(loss, prior=PRIOR))(logits)
        values.sum().backward()
        optimizer.step()
    assert values.min() >= best - 1e-9
    assert logits.softmax(2).amax(2).min() > 0.99


@every_loss
def test_the_uniform_prior_is_the_loss_without_one(loss: Loss) -> None:
    logits = torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    logits.requires_grad_()
    with_prior, without = loss(logits, prior=[0.25] * 4), loss(logits)
    torch.testing.assert_close(with_prior, without, rtol=1e-14, atol=1e-15)
    torch.testing.assert_close(
        *(torch.autograd.grad(value, logits)[0] for value in (with_prior, without)),
        rtol=1e-12,
        atol=1e-16,
    )


def softmax(logits: Any) -> Any:
    rows = []
    for row in logits.tolist():
        largest = max(row)
        powers = [mpmath.exp(z - largest) for z in row]
        rows.append([power / mpmath.fsum(powers) for power in powers])
    return mpmath.matrix(rows)


def exact_value(name: str, probs: Any, q: Any) -> Any:
    """The formulas, plainly, with as many digits as mpmath is set to."""
    rows, classes = probs.rows, probs.cols
    column = [probs[:, c] for c in range(classes)]
    if name == "cwsm":
        return (
            -mpmath.fsum(
                mpmath.sqrt(classes * q[c])
                * mpmath.fsum(p**2 for p in column[c])
                / mpmath.sqrt(mpmath.fsum(column[c]))
                for c in range(classes)
            )
            / classes
        )
    if name.startswith("nsm"):
        r = mpmath.mpf({"nsm": 0.5, "nsm r=0.1": 0.1, "nsm r=1": 1.0}[name])
        squares = mpmath.fsum(p**2 for p in probs)
        others = mpmath.mpf(0)
        for i, j in itertools.permutations(range(rows), 2):
            both = [probs[i, c] * probs[j, c] for c in range(classes)]
            weighted = mpmath.fsum(both[c] / (classes * q[c]) for c in range(classes))
            others += mpmath.fsum(both) ** (r - 1) * weighted
        return -squares / (others + squares)
    if name == "information_maximization":
        entropy = -mpmath.fsum(p * mpmath.log(p) for p in probs) / rows
        mean = [mpmath.fsum(column[c]) / rows for c in range(classes)]
        divergence = mpmath.fsum(mean[c] * mpmath.log(mean[c] / q[c]) for c in range(classes))
        return entropy + divergence - mpmath.log(classes)
    scaled = probs * mpmath.diag([mpmath.sqrt(classes * share) for share in q])
    if name == "bnm":
        return -mpmath.fsum(mpmath.svd_r(scaled, compute_uv=False)) / rows
    norms = [mpmath.sqrt(mpmath.fsum(p**2 for p in scaled[:, c])) for c in range(classes)]
    return -mpmath.fsum(norms) / classes


@pytest.mark.parametrize("name", AIMING)
@pytest.mark.parametrize("spread", [1.0, 12.0])
def test_value_and_gradient_against_mpmath(name: str, spread: float) -> None:
    """Central differences with 60 digits leave 30 of them exact."""
    generator = torch.Generator().manual_seed(3)
    logits = spread * torch.randn(5, 3, generator=generator, dtype=torch.float64)
    leaf = logits.clone().requires_grad_()
    value = AIMING[name](leaf, prior=PRIOR)
    (gradient,) = torch.autograd.grad(value, leaf)
    with mpmath.workdps(60):
        exact, shares = mpmath.matrix(logits.tolist()), [mpmath.mpf(p) for p in PRIOR.tolist()]

        def at(moved: Any) -> Any:
            return exact_value(name, softmax(moved), shares)

        assert value.item() == pytest.approx(float(at(exact)), rel=1e-12)
        step = mpmath.mpf(10) ** -15
        for i, c in itertools.product(range(5), range(3)):
            up, down = exact.copy(), exact.copy()
            up[i, c] += step
            down[i, c] -= step
            slope = float((at(up) - at(down)) / (2 * step))
            assert gradient[i, c].item() == pytest.approx(slope, rel=1e-8, abs=1e-14), (i, c)


@every_loss
@pytest.mark.parametrize(
    "shares",
    [
        [0.5, 0.5, 0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.6, 0.4, 1e-45, 1e-30, 1e-10],
    ],
)
@pytest.mark.parametrize("rows", [3, 8, 450])
def test_absent_classes_leave_everything_finite(loss: Loss, shares: list[float], rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    soft = torch.randn(rows, 5, generator=generator)
    one_hot = torch.eye(5)[torch.arange(rows) % 5]
    for logits in (soft, one_hot * 95, one_hot * 1e4, torch.eye(5)[[4] * rows] * 1e4, 0 * soft):
        leaf = logits.clone().requires_grad_()
        value = loss(leaf, prior=shares)
        (gradient,) = torch.autograd.grad(value, leaf)
        assert value.isfinite()
        assert gradient.isfinite().all()


@every_loss
def test_a_share_of_zero_counts_as_a_millionth_of_the_uniform_one(loss: Loss) -> None:
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    floored = torch.tensor([0.7, 0.3, 2.5e-7, 2.5e-7], dtype=torch.float64)
    torch.testing.assert_close(
        loss(logits, prior=[0.7, 0.3, 0.0, 1e-45]), loss(logits, prior=floored)
    )


@pytest.mark.parametrize("name", ["bnm", "nsm"])
def test_float32_keeps_its_digits_on_large_batches(name: str) -> None:
    """The Gram route of BNM and the halved Gram matrix of NSM, against float64."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(600, 40, generator=generator)
    prior = torch.linspace(1, 30, 40)
    values, gradients = [], []
    for dtype in (torch.float32, torch.float64):
        leaf = logits.to(dtype).requires_grad_()
        value = AIMING[name](leaf, prior=(prior / prior.sum()).to(dtype))
        values.append(value.item())
        gradients.append(torch.autograd.grad(value, leaf)[0].double())
    assert values[0] == pytest.approx(values[1], rel=2e-6)
    assert (gradients[0] - gradients[1]).norm() / gradients[1].norm() < 1e-4


@pytest.mark.parametrize("loss", [cwsm, nsm])
def test_a_prior_without_equity_is_refused(loss: Loss) -> None:
    with pytest.raises(ValueError, match=r"prior is given with r = 0.*choose r above 0"):
        loss(torch.zeros(4, 3), r=0.0, prior=PRIOR)


@every_loss
@pytest.mark.parametrize(
    "prior",
    ["estimate", ("a", "b", "c"), {"a": 1.0}, np.array(["a", "b", "c"]), [None, 1, 2], {1, 2}],
    ids=str,
)
def test_names_in_place_of_shares_are_refused_in_one_line(loss: Loss, prior: Any) -> None:
    """Before: torch's own TypeError about invalid data types."""
    said = r"takes one share for each of the 3 classes, .* belong to equida\.adapt"
    with pytest.raises(ValueError, match=said) as error:
        loss(torch.zeros(4, 3), prior=prior)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("rows", "spread"), [(288, 0.01), (288, 1.0), (700, 0.1)])
def test_bnm_keeps_its_digits_with_very_unequal_shares(rows: int, spread: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = spread * torch.randn(rows, 345, generator=generator, dtype=torch.float64)
    shares = torch.rand(345, generator=generator, dtype=torch.float64).pow(6)
    shares /= shares.sum()
    expected, found = bnm(logits, prior=shares), bnm(logits.float(), prior=shares.float())
    # Before, the noise was taken for that of the largest column: 1e-4 to 2e-3 here.
    assert float(found.double() / expected) == pytest.approx(1.0, abs=4e-5)


def test_shares_in_half_precision_sum_to_1_as_far_as_they_can() -> None:
    shares = torch.tensor([0.4, 0.3, 0.2, 0.1])
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    found = nsm(logits.bfloat16(), prior=shares.bfloat16())
    assert float(found) == pytest.approx(float(nsm(logits, prior=shares)), rel=2e-2)


def test_priors_can_be_vectorised() -> None:
    logits = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    priors = torch.tensor([[0.5, 0.5], [0.8, 0.2]])
    found = torch.func.vmap(lambda prior: nsm(logits, prior=prior))(priors)
    torch.testing.assert_close(found, torch.stack([nsm(logits, prior=q) for q in priors]))


def test_a_prior_with_one_large_share_leaves_cwsm_finite() -> None:
    """Before: NaN at r = 1 where a class is absent from the batch."""
    logits = torch.zeros(4, 10)
    logits[:, 0] = -100.0
    logits.requires_grad_()
    loss = cwsm(logits, r=1.0, prior=[0.9] + [0.1 / 9] * 9)
    loss.backward()
    exact = torch.cat([torch.zeros(4, 1), torch.full((4, 9), 1 / 9)], 1).double()
    terms = (exact.square().sum(0) / exact.sum(0).clamp_min(1e-300))[1:] * (10 * 0.1 / 9)
    assert float(loss.detach()) == pytest.approx(-float(terms.sum()) / 10)
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())
