"""Flags with odd values, and logits of every size."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from tests.attack import Case, Outcome, family

VALUES = [
    "",
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "1",
    "2",
    "1e400",
    "1e30",
    "9" * 400,
    "9" * 5000,
    "0x10",
    "1_000",
    "none",
    "yes",
    "a",
    "\x1b[31m",
    "\u0663",
    "1,2",
    "1:2",
    "=",
    "--",
    "../..",
    "x" * 5000,
    "nsm",
    " 1 ",
    "1.5",
    "true",
    "20240101",
    "99999999999999999999",
    "a\nb",
    "[/]",
    "%s%n",
    "{0}",
]
ADAPT = [
    "iterations",
    "batch-size",
    "learning-rate",
    "momentum",
    "weight-decay",
    "gamma",
    "power",
    "warm-up",
    "bottleneck",
    "dropout",
    "holdout",
    "clip",
    "accumulate",
    "precision",
    "evaluate-every",
    "log-every",
    "keep",
    "eval-batch-size",
    "init",
    "label-smoothing",
    "seed",
    "devices",
    "accelerator",
    "threads",
    "method",
    "recipe",
    "from",
    "data",
    "trade-off",
    "r",
    "alpha",
    "eps",
    "head-multiplier",
    "weights",
    "backbone",
    "dataset",
    "source",
    "target",
    "num-nodes",
    "unknown",
]
BENCH = [
    "seeds",
    "jobs",
    "sweep",
    "methods",
    "tasks",
    "select",
    "format",
    "cluster",
    "recipe",
    "data",
]


@family("flags", quick=20, long=1000)
def flags(case: Case) -> Outcome:
    """One flag, or two, with a value that nobody should give."""
    random, toy = case.random, case.data / "toy.npz"
    verb = random.choice(
        ["adapt"] * 4 + ["bench", "features", "predict", "report", "theory", "list"]
    )
    if verb == "adapt":
        base: list[object] = [
            "adapt",
            "-s",
            f"{toy}:a",
            "-t",
            f"{toy}:b",
            "--out",
            case.folder / "o",
        ]
        base += ["--iterations=2", "--batch-size=8", "--bottleneck=4", "--quiet"]
        known = ADAPT
    elif verb == "bench":
        # The wrong data let nothing begin.
        base, known = ["bench", "office31", "--out", case.folder / "o", "--data", toy], BENCH
    elif verb == "features":
        base = ["features", case.folder, "--out", case.folder / "f.safetensors"]
        known = ["batch-size", "workers", "views", "seed", "dtype", "backbone", "domain", "data"]
    elif verb == "theory":
        base, known = ["theory", "--quick", "--out", toy], ["seed", "unknown"]
    elif verb == "list":
        base, known = ["list"], ["unknown", "json"]
    else:
        base, known = [verb, case.folder, case.folder], ["batch-size", "maps", "out", "accelerator"]
    for _ in range(random.choice([1, 1, 2])):
        base.append(f"--{random.choice(known)}={random.choice(VALUES)}")
    return case.call(*base, codes=(0, 1, 2))


def _losses() -> dict[str, Callable[..., Any]]:
    from equida import losses

    plain = {name: getattr(losses, name) for name in losses.__all__}
    shares = {f"nsm r={r}": partial(losses.nsm, r=r) for r in (0.01, 0.24, 0.25, 0.9, 1.0)}
    return {name: loss for name, loss in {**plain, **shares}.items() if callable(loss)}


@family("losses", quick=10, long=2000)
def losses(case: Case) -> Outcome:
    """Finite logits of any size give a finite value and a finite gradient, in every dtype."""
    random = case.random
    dtype = random.choice([torch.float64, torch.float32, torch.float16, torch.bfloat16])
    largest = torch.finfo(dtype).max
    rows, classes = random.choice([1, 2, 5, 30]), random.choice([2, 3, 7, 40])
    generator = torch.Generator().manual_seed(case.number)
    unit = torch.rand(rows, classes, generator=generator, dtype=torch.float64) * 2 - 1
    scale = random.choice([0.0, 1e-30, 1.0, 1e2, 1e4, largest**0.5, largest])
    logits = (unit * scale).clamp(-largest, largest)
    chosen = torch.rand(rows, classes, generator=generator)
    logits[chosen < random.choice([0.0, 0.3, 0.9])] = random.choice([0.0, largest, -largest])
    failures = []
    for name, loss in _losses().items():
        x = logits.to(dtype).requires_grad_()
        value = loss(x)
        (gradient,) = torch.autograd.grad(value, x)
        if not (value.isfinite() and gradient.isfinite().all()):
            failures.append(name)
    what = f"{dtype}, {rows} x {classes}, scale {scale}"
    return Outcome("wrong" if failures else "clean", f"{what}: {', '.join(failures)}")
