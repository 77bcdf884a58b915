"""Forward and backward of every loss, from logits, on one thread.

Bars: CWSM at most 2.5 x cross-entropy at 36x31 and 36x65 and 2 x at 1024x1000; NSM (r=0.5) at most
3.5 x at the small sizes and at least 1.5 x faster than plain autograd at 1024x1000; BNM at most
1.0 x the matrix_norm form at the small sizes and 0.4 x at 128x1000.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.bars import judged
from benchmarks.timing import medians
from equida import losses

Loss = Callable[[Tensor], Tensor]


def nsm_by_autograd(logits: Tensor) -> Tensor:
    """NSM at r = 0.5 as its formula reads, the diagonal masked before the power."""
    probs = logits.softmax(1)
    squares = probs.square().sum()
    gram = (probs @ probs.T).masked_fill(torch.eye(len(probs), dtype=torch.bool), 0.0)
    return -squares / (gram.sqrt().sum() + squares)


def nsm_less_diagonal(logits: Tensor) -> Tensor:
    """The same with the diagonal subtracted afterwards: fewer operations, fewer digits."""
    probs = logits.softmax(1)
    squares = probs.square().sum()
    roots = (probs @ probs.T).sqrt()
    return -squares / (roots.sum() - roots.diagonal().sum() + squares)


def bnm_by_matrix_norm(logits: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.matrix_norm(logits.softmax(1), "nuc")
    return -norm / len(logits)


BARS = {
    ((36, 31), "cwsm"): ("cross-entropy", 2.5),
    ((36, 65), "cwsm"): ("cross-entropy", 2.5),
    ((1024, 1000), "cwsm"): ("cross-entropy", 2.0),
    ((36, 31), "nsm"): ("cross-entropy", 3.5),
    ((36, 65), "nsm"): ("cross-entropy", 3.5),
    ((1024, 1000), "nsm"): ("nsm by autograd", 1 / 1.5),
    ((36, 31), "bnm"): ("bnm by matrix_norm", 1.0),
    ((36, 65), "bnm"): ("bnm by matrix_norm", 1.0),
    ((128, 1000), "bnm"): ("bnm by matrix_norm", 0.4),
}


def run() -> None:
    """Print the table of ratios, and what misses its bar."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for shape in ((36, 31), (36, 65), (128, 1000), (1024, 1000)):
            _compare(*shape)
        _accuracy()
    finally:
        torch.set_num_threads(threads)


def _compare(rows: int, classes: int) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(rows, classes, generator=generator, requires_grad=True)
    labels = torch.randint(classes, (rows,), generator=generator)
    forms: dict[str, Loss] = {
        "cross-entropy": lambda z: F.cross_entropy(z, labels),
        "max_square": losses.max_square,
        "iw_max_square": losses.iw_max_square,
        "cwsm": losses.cwsm,
        "nsm": losses.nsm,
        "nsm r=1": lambda z: losses.nsm(z, r=1.0),
        "nsm by autograd": nsm_by_autograd,
        "nsm less diagonal": nsm_less_diagonal,
        "fbnm": losses.fbnm,
        "entropy": losses.entropy,
        "information_maximization": losses.information_maximization,
        "mcc": losses.mcc,
    }
    if rows <= 128:
        forms |= {"bnm": losses.bnm, "bnm by matrix_norm": bnm_by_matrix_norm}
    target = torch.empty_like(logits)
    calls: dict[str, Callable[[], object]] = {
        name: lambda form=form: torch.autograd.grad(form(logits), logits)  # type: ignore[misc]
        for name, form in forms.items()
    }
    # The least that any loss must do: read the logits once, write their gradient once.
    calls["floor"] = lambda: torch.mul(logits.detach(), 2.0, out=target)
    _print(rows, classes, medians(calls, seconds=6.0 if rows * classes < 1e5 else 12.0))


def _print(rows: int, classes: int, times: dict[str, float]) -> None:
    table = Table(title=f"{rows} x {classes}, forward + backward, one thread")
    for column in ("loss", "time", "/ cross-entropy", "/ floor", "bar"):
        table.add_column(column, justify="left" if column == "loss" else "right")
    for name, seconds in times.items():
        bar = ""
        if ((rows, classes), name) in BARS:
            baseline, limit = BARS[(rows, classes), name]
            what = f"{name} / {baseline}, {rows} x {classes}"
            bar = judged("losses", what, seconds / times[baseline], limit, f"x {baseline}")
        table.add_row(
            name,
            f"{seconds * 1e6:.0f} us",
            f"{seconds / times['cross-entropy']:.2f}",
            f"{seconds / times['floor']:.1f}",
            bar,
        )
    Console(width=120).print(table)


def _accuracy() -> None:
    """The worst relative error of BNM's float32 gradient against SVD in float64."""
    worst = 0.0
    for rows, classes in ((36, 31), (36, 65), (128, 1000)):
        for scale in (1.0, 5.0, 20.0):
            generator = torch.Generator().manual_seed(1)
            exact = scale * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
            single = exact.float().requires_grad_()
            exact = single.detach().double().requires_grad_()
            (gradient,) = torch.autograd.grad(losses.bnm(single), single)
            (expected,) = torch.autograd.grad(losses.bnm(exact), exact)
            worst = max(worst, float((gradient - expected).norm() / expected.norm()))
    what = "bnm: worst relative gradient error against float64 SVD"
    Console(width=120).print(f"{what} {judged('losses', what, worst, 1e-4)}")
