"""What every loss promises: a finite gradient, full precision inside, checked arguments."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from equida.evaluation import (
    class_weighted_squares,
    mean_squares,
    normalized_squares,
    nuclear_norm,
)
from equida.losses import (
    bnm,
    cwsm,
    entropy,
    fbnm,
    information_maximization,
    iw_max_square,
    max_square,
    mcc,
    nsm,
)

Loss = Callable[[Tensor], Tensor]
SKEWED = torch.tensor([0.4, 0.3, 0.1, 0.15, 0.05], dtype=torch.float64)

LOSSES: dict[str, Loss] = {
    "max_square": max_square,
    "iw_max_square": iw_max_square,
    "bnm": bnm,
    "fbnm": fbnm,
    "cwsm": cwsm,
    "cwsm r=0": partial(cwsm, r=0.0),
    "cwsm r=1": partial(cwsm, r=1.0),
    "nsm": nsm,
    "nsm r=0": partial(nsm, r=0.0),
    "nsm r=0.05": partial(nsm, r=0.05),
    "nsm r=1": partial(nsm, r=1.0, alpha=2.0),
    "entropy": entropy,
    "information_maximization": information_maximization,
    "mcc": mcc,
}
# A prior of five shares fits only the small shapes.
WITH_PRIOR: dict[str, Loss] = {
    "cwsm prior": partial(cwsm, prior=SKEWED),
    "nsm prior": partial(nsm, prior=SKEWED),
    "nsm prior r=0.1": partial(nsm, r=0.1, prior=SKEWED),
    "nsm prior r=1": partial(nsm, r=1.0, prior=SKEWED),
    "bnm prior": partial(bnm, prior=SKEWED),
    "fbnm prior": partial(fbnm, prior=SKEWED),
    "information_maximization prior": partial(information_maximization, prior=SKEWED),
}
every_loss = pytest.mark.parametrize("name", LOSSES)
every_form = pytest.mark.parametrize("name", LOSSES | WITH_PRIOR)


def loss_of(name: str) -> Loss:
    return (LOSSES | WITH_PRIOR)[name]


def random_logits(rows: int, classes: int, scale: float = 2.0, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(rows, classes, generator=generator, dtype=torch.float64)


# These two hold their weights fixed by definition, so that their gradient is not the whole one.
WEIGHTS_WITHOUT_GRADIENT = {"iw_max_square", "mcc"}


@pytest.mark.parametrize("name", sorted((LOSSES | WITH_PRIOR).keys() - WEIGHTS_WITHOUT_GRADIENT))
@pytest.mark.parametrize("rows", [3, 9], ids=["B<C", "B>C"])
def test_gradcheck(name: str, rows: int) -> None:
    logits = random_logits(rows, 5).requires_grad_()
    assert torch.autograd.gradcheck(loss_of(name), logits)
    if not name.startswith(("bnm", "fbnm")):
        assert torch.autograd.gradgradcheck(loss_of(name), logits)


@every_loss
def test_invariant_to_the_order_of_rows_and_classes(name: str) -> None:
    logits = random_logits(7, 5)
    permuted = logits[torch.tensor([3, 0, 6, 1, 5, 2, 4])][:, torch.tensor([4, 2, 0, 3, 1])]
    torch.testing.assert_close(loss_of(name)(permuted), loss_of(name)(logits))


def extreme_inputs() -> dict[str, Tensor]:
    one_hot = torch.eye(5)[torch.arange(8) % 5]
    absent = random_logits(8, 5).float()
    absent[:, 2] = -1e4
    return {
        "one-hot": one_hot * 200,
        "one-hot at 1e4": one_hot * 1e4,
        "from -1e4 to 1e4": one_hot * 2e4 - 1e4,
        "collapsed": torch.eye(5)[[0] * 8] * 1e4,
        "identical rows": random_logits(1, 5).float().repeat(8, 1),
        "uniform": torch.zeros(8, 5),
        "absent class": absent,
        "one row": random_logits(1, 5).float(),
        "one row, one-hot": torch.eye(5)[:1] * 1e4,
        "fewer rows than classes": random_logits(3, 5).float(),
        "random at 1e4": random_logits(8, 5, scale=1.0).float().clamp(-1, 1) * 1e4,
        "denormal probabilities": one_hot * 95,
        "wide": random_logits(40, 70, scale=1e3).float().clamp(-1e4, 1e4),
    }


@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("case", extreme_inputs())
def test_finite_value_and_gradient(name: str, dtype: torch.dtype, case: str) -> None:
    logits = extreme_inputs()[case].to(dtype).requires_grad_()
    value = loss_of(name)(logits)
    (gradient,) = torch.autograd.grad(value, logits)
    assert value.dtype == torch.float32
    assert value.isfinite()
    assert gradient.dtype == dtype
    assert gradient.isfinite().all()


def one_hot_beyond_the_range(dtype: torch.dtype) -> Tensor:
    """Rows of the largest numbers of a dtype: their differences are larger than any number."""
    largest = torch.finfo(dtype).max
    rows = torch.full((8, 5), -largest, dtype=dtype)
    rows[torch.arange(8), torch.arange(8) % 5] = largest
    rows[0, 1] = largest * 0.5  # far below the largest of its row, as everything else is
    return rows


@every_form
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_rows_whose_spread_exceeds_the_range_of_their_dtype(name: str, dtype: torch.dtype) -> None:
    """They are one-hot, so that value and gradient are those of rows of 0 and 2000."""
    logits = one_hot_beyond_the_range(dtype).requires_grad_()
    value = loss_of(name)(logits)
    (gradient,) = torch.autograd.grad(value, logits)
    moderate = (torch.eye(5, dtype=torch.float64)[torch.arange(8) % 5] * 2000).requires_grad_()
    expected = loss_of(name)(moderate)
    (expected_gradient,) = torch.autograd.grad(expected, moderate)
    torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient.double(), expected_gradient, rtol=1e-5, atol=1e-6)


@every_form
def test_ties_at_the_largest_numbers(name: str) -> None:
    """Where the largest logits of a row are equal, its gradient is that of the same tie at 2000."""
    largest = torch.finfo(torch.float32).max
    tied = torch.tensor([[1.0, 1, -1, -1, -1], [-1, 1, -1, -1, -1], [1, 1, 1, 1, 1]])
    outcomes = []
    for scale in (largest, 1000.0):
        logits = (tied * scale).requires_grad_()
        value = loss_of(name)(logits)
        outcomes.append((value, *torch.autograd.grad(value, logits)))
    assert all(tensor.isfinite().all() for tensor in outcomes[0])
    torch.testing.assert_close(outcomes[0], outcomes[1], rtol=1e-5, atol=1e-6)


def test_mcc_with_a_low_temperature() -> None:
    logits = (torch.eye(5)[torch.arange(8) % 5] * 1e38).requires_grad_()
    value = mcc(logits, temperature=0.1)
    (gradient,) = torch.autograd.grad(value, logits)
    assert value == 0.0
    assert gradient.isfinite().all()


@every_form
def test_float64_stays_float64(name: str) -> None:
    logits = random_logits(6, 5).requires_grad_()
    value = loss_of(name)(logits)
    assert value.dtype == torch.float64
    assert torch.autograd.grad(value, logits)[0].dtype == torch.float64


@every_form
@pytest.mark.parametrize("rows", [6, 500], ids=["small", "large"])
def test_low_precision_and_autocast_compute_in_float32(name: str, rows: int) -> None:
    """The value of rounded logits is their float32 value to the last digits, also in autocast."""
    for dtype in (torch.float16, torch.bfloat16):
        rounded = random_logits(rows, 5).to(dtype)
        exact = loss_of(name)(rounded.double())
        low = loss_of(name)(rounded)
        torch.testing.assert_close(low.double(), exact, rtol=2e-6, atol=1e-7)
        logits = rounded.float().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = loss_of(name)(logits)
        torch.testing.assert_close(inside.double(), exact, rtol=2e-6, atol=1e-7)
        (gradient,) = torch.autograd.grad(inside, logits)
        reference = rounded.double().requires_grad_()
        (expected,) = torch.autograd.grad(loss_of(name)(reference), reference)
        atol = 1e-5 * expected.abs().max().item()
        torch.testing.assert_close(gradient.double(), expected, rtol=0.0, atol=atol)


@every_form
def test_vmap_and_functional_gradient(name: str) -> None:
    batches = torch.stack([random_logits(6, 5, seed=seed) for seed in range(3)])
    loss = loss_of(name)
    one_by_one = torch.stack([loss(batch) for batch in batches])
    torch.testing.assert_close(torch.vmap(loss)(batches), one_by_one)
    gradients = torch.vmap(torch.func.grad(loss))(batches)
    for batch, gradient in zip(batches, gradients, strict=True):
        leaf = batch.clone().requires_grad_()
        torch.testing.assert_close(gradient, torch.autograd.grad(loss(leaf), leaf)[0])


@pytest.mark.parametrize("loss", [cwsm, nsm])
def test_derivatives_in_forward_mode_are_refused(loss: Callable[[Tensor], Tensor]) -> None:
    """Before: in words of torch, which do not say what to do instead."""
    logits = random_logits(6, 4)
    twice = torch.func.jacrev(torch.func.jacrev(loss))(logits)
    torch.testing.assert_close(twice, torch.autograd.functional.hessian(loss, logits))
    for name in ("hessian", "jacfwd"):
        with pytest.raises(NotImplementedError, match=r"use torch\.func\.jacrev, twice"):
            getattr(torch.func, name)(loss)(logits)


@pytest.mark.slow(reason="the compiler is asked about every loss")
@every_form
def test_compiles_as_one_graph(name: str) -> None:
    """Dynamo takes the loss and its gradient without a break; code generation is left out."""
    torch.compiler.reset()
    compiled = torch.compile(loss_of(name), fullgraph=True, backend="aot_eager")
    logits = random_logits(6, 5).requires_grad_()
    value = compiled(logits)
    torch.testing.assert_close(value, loss_of(name)(logits))
    expected = torch.autograd.grad(loss_of(name)(logits), logits)[0]
    torch.testing.assert_close(torch.autograd.grad(value, logits)[0], expected)
    plain = logits.detach()
    torch.testing.assert_close(compiled(plain), loss_of(name)(plain))


@pytest.mark.parametrize("rows", [7, 300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_loss_is_minus_its_measure(rows: int, dtype: torch.dtype) -> None:
    """Two writings of each formula: the closed forms on logits, the plain ones on probabilities."""
    logits = random_logits(rows, 20).to(dtype)
    probs = logits.softmax(1)
    prior = torch.linspace(1.0, 3.0, 20, dtype=dtype)
    prior = prior / prior.sum()
    close = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-7)
    close(max_square(logits), -mean_squares(probs))
    close(bnm(logits, "sum"), -nuclear_norm(probs))
    close(bnm(logits, "sum", prior), -nuclear_norm(probs, prior))
    for r in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0):
        close(cwsm(logits, r), -class_weighted_squares(probs, r))
        close(nsm(logits, r, 1.5), -normalized_squares(probs, r, 1.5))
        if r == 0.0:
            continue
        close(cwsm(logits, r, prior), -class_weighted_squares(probs, r, prior))
        close(nsm(logits, r, 1.5, prior=prior), -normalized_squares(probs, r, 1.5, prior=prior))


AT_OPTIMUM: dict[str, Loss] = {
    "bnm": partial(bnm, normalize="optimum"),
    "cwsm": partial(cwsm, normalize="optimum"),
    "cwsm r=0": partial(cwsm, r=0.0, normalize="optimum"),
    "cwsm r=0.8": partial(cwsm, r=0.8, normalize="optimum"),
    "nsm": partial(nsm, normalize="optimum"),
    "nsm r=0": partial(nsm, r=0.0, normalize="optimum"),
    "nsm r=0.1": partial(nsm, r=0.1, alpha=2.0, eps=0.01, normalize="optimum"),
    "nsm r=1": partial(nsm, r=1.0, alpha=1.5, normalize="optimum"),
}


@pytest.mark.parametrize("loss", AT_OPTIMUM.values(), ids=AT_OPTIMUM.keys())
@pytest.mark.parametrize(("rows", "classes"), [(12, 4), (8, 8), (3, 10)])
def test_the_minimum_in_the_scale_of_the_optimum(loss: Loss, rows: int, classes: int) -> None:
    """It is -1 at one-hot rows of even classes, whatever the batch and the number of classes."""
    even = torch.eye(classes, dtype=torch.float64)[torch.arange(rows) % classes] * 400
    assert loss(even).item() == pytest.approx(-1.0)
    assert loss(random_logits(rows, classes).double()).item() > -1.0


@pytest.mark.parametrize(("loss", "growth"), [(bnm, 0.5), (cwsm, 2.0), (nsm, 0.25)])
def test_the_weight_of_a_loss_carries_over_in_the_scale_of_the_optimum(
    loss: Callable[..., Tensor], growth: float
) -> None:
    """The gradient of a sample stays from 256 to 1024 rows; in the paper's scale it changes."""

    def mean_gradient(rows: int, normalize: str) -> float:
        torch.manual_seed(0)
        logits = (3 * torch.randn(rows, 16, dtype=torch.float64)).requires_grad_()
        value = loss(logits, normalize=normalize)
        (by_logits,) = torch.autograd.grad(value, logits)
        return float(by_logits.norm(dim=1).mean()) * rows

    paper = "batch" if loss is bnm else "paper"
    assert mean_gradient(1024, paper) / mean_gradient(256, paper) == pytest.approx(growth, rel=0.15)
    stays = mean_gradient(1024, "optimum") / mean_gradient(256, "optimum")
    assert stays == pytest.approx(1.0, rel=0.15)


@pytest.mark.parametrize("loss", [bnm, cwsm, nsm])
@pytest.mark.parametrize("classes", [12, 65])
def test_the_scale_that_carries_over_is_the_papers_at_its_batch(
    loss: Callable[..., Tensor], classes: int
) -> None:
    paper = "batch" if loss is bnm else "paper"
    logits = random_logits(36, classes)
    assert torch.equal(loss(logits, normalize="transfer"), loss(logits, normalize=paper))
    twice = random_logits(72, classes).double()
    ratio = loss(twice, normalize="transfer") / loss(twice, normalize="optimum")
    small = logits.double()
    expected = loss(small, normalize=paper) / loss(small, normalize="optimum")
    assert ratio.item() == pytest.approx(expected.item(), rel=1e-4)  # eps times rows differs


@pytest.mark.parametrize("loss", [bnm, cwsm, nsm])
def test_an_unknown_scale_is_refused(loss: Callable[..., Tensor]) -> None:
    with pytest.raises(ValueError, match=r"normalize is 'mean'; it must be one of .*optimum"):
        loss(torch.zeros(2, 2), normalize="mean")


def test_bnm_gradient_against_float64_svd() -> None:
    """The Gram route, also on saturated and rank-deficient predictions."""
    for rows, classes in [(36, 65), (128, 100), (64, 300)]:
        for scale in (1.0, 5.0, 20.0):
            logits = random_logits(rows, classes, scale).float().requires_grad_()
            (gradient,) = torch.autograd.grad(bnm(logits), logits)
            exact = logits.detach().double().requires_grad_()
            (expected,) = torch.autograd.grad(bnm(exact), exact)
            error = (gradient - expected).norm() / expected.norm()
            assert error < 1e-4, (rows, classes, scale)


def test_nsm_gradient_is_bounded_where_pairs_underflow() -> None:
    """|dO_r/dz| <= 2 r sum_j G_ij^r; a clamped power would give 0 or inf where G is 1e-60."""
    logits = torch.tensor([[140.0, 0.0, 0.0], [0.0, 140.0, 0.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(nsm(logits, r=0.05), logits)
    exact = logits.detach().double().requires_grad_()
    measure = normalized_squares(exact.softmax(1), r=0.05, eps=1e-6)
    (expected,) = torch.autograd.grad(-measure, exact)
    assert expected.abs().max() > 1e-5
    torch.testing.assert_close(gradient.double(), expected, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("rows", [6, 500])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_bnm_of_a_non_finite_logit_is_nan_and_so_is_its_gradient(rows: int, bad: float) -> None:
    """Small matrices and large ones; the loop then says where a training diverged."""
    logits = random_logits(rows, 5).float()
    logits[2, 3] = bad
    logits.requires_grad_()
    value = bnm(logits)
    assert value.isnan()
    (gradient,) = torch.autograd.grad(value, logits)
    assert gradient.isnan().all()


UNIFORM = torch.full((5,), 0.2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda z: cwsm(z, r=1.5), r"r is 1\.5; it must be in \[0, 1\]"),
        (lambda z: nsm(z, r=-0.1), r"r is -0\.1; it must be in \[0, 1\]"),
        (lambda z: nsm(z, r=float("nan")), r"r is nan"),
        (lambda z: nsm(z, r="a"), r"r is 'a'; it must be in \[0, 1\]"),  # type: ignore[arg-type]
        (lambda z: nsm(z, r=None), r"r is None; it must be in \[0, 1\]"),  # type: ignore[arg-type]
        (lambda z: cwsm(z, r="a"), r"r is 'a'; it must be in \[0, 1\]"),  # type: ignore[arg-type]
        (lambda z: cwsm(z, r=None), r"r is None; it must be in \[0, 1\]"),  # type: ignore[arg-type]
        (lambda z: nsm(z, alpha=0.0), r"alpha is 0\.0; it must be finite and above 0"),
        (lambda z: nsm(z, alpha=-1.0), r"alpha is -1\.0"),
        (lambda z: nsm(z, eps=-1.0), r"eps is -1\.0"),
        (lambda z: mcc(z, temperature=0.0), r"temperature is 0\.0"),
        (lambda z: iw_max_square(z, ratio=2.0), r"ratio is 2\.0; it must be in \[0, 1\]"),
        (lambda z: bnm(z, "mean"), r"normalize is 'mean'; it must be one of batch, min"),  # type: ignore[arg-type]
        (lambda z: cwsm(z, prior=UNIFORM * 2), r"prior sums to 2"),
        (lambda z: nsm(z, prior=[0.5, 0.5]), r"prior has shape \(2,\).*each of the 5 classes"),
        (lambda z: nsm(z, prior=[1.1, -0.1, 0.0, 0.0, 0.0]), r"share of -0\.1; .* not be below 0"),
        (lambda z: bnm(z, prior=[0.5, 0.5]), r"prior has shape \(2,\)"),
        (lambda z: fbnm(z, prior=UNIFORM * 2), r"prior sums to 2"),
        (lambda z: information_maximization(z, prior=UNIFORM / 2), r"prior sums to 0\.5"),
        (lambda z: cwsm(z[0]), r"logits have shape \(5,\); they must be 2-D"),
        (lambda z: nsm(z[:0]), r"logits have shape \(0, 5\); no axis may be empty"),
        (lambda z: entropy(z.long()), r"logits are torch\.int64"),
        (lambda z: max_square(z[None]), r"logits have shape \(1, 6, 5\)"),
    ],
)
def test_bad_arguments_name_value_and_range(call: Callable[[Tensor], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(random_logits(6, 5))


@pytest.mark.parametrize("tiny", [0.0, 1e-300, 1e-45, 1e-38, 1e-7])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("r", [0.01, 0.5, 1.0])
def test_priors_with_shares_that_all_but_vanish(tiny: float, dtype: torch.dtype, r: float) -> None:
    prior = torch.tensor([tiny, tiny, 0.5, 0.3, 0.2], dtype=torch.float64)
    inputs = [*extreme_inputs().values(), one_hot_beyond_the_range(torch.float32)]
    for logits in (rows.to(dtype).requires_grad_() for rows in inputs if rows.shape[1] == 5):
        for loss in (partial(cwsm, r=r), partial(nsm, r=r), bnm, fbnm, information_maximization):
            value = loss(logits, prior=prior)
            (gradient,) = torch.autograd.grad(value, logits)
            assert value.isfinite(), loss
            assert gradient.isfinite().all(), loss


@pytest.mark.parametrize("loss", [nsm, cwsm, bnm])
def test_the_bound_of_a_scale_is_reached_where_classes_divide_the_batch(
    loss: Callable[..., Tensor],
) -> None:
    for rows, classes, reached in ((36, 12, True), (36, 31, False), (36, 65, True)):
        best = 80.0 * torch.eye(classes)[torch.arange(rows) % classes]
        value = float(loss(best, normalize="optimum"))
        assert value == pytest.approx(-1.0, abs=1e-5 if reached else 0.1)
        assert reached == (value < -0.999)
