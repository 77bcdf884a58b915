"""Local maxima, which the theorems do not speak of: where an ascent can end instead."""

from functools import partial

import torch
from torch import Tensor

from equida.evaluation import class_weighted_squares, normalized_squares, nuclear_norm
from equida.paper.theory.checks import Check, Context, Measure, verdict_fields
from equida.paper.theory.onehot import one_hot, partitions
from equida.paper.theory.search import random_logits

MEASURES: dict[str, Measure] = {
    "nuclear norm": nuclear_norm,
    "CWS r=0.5": partial(class_weighted_squares, r=0.5),
    "CWS r=1": partial(class_weighted_squares, r=1.0),
    "NS r=0.5": partial(normalized_squares, r=0.5),
    "NS r=1": partial(normalized_squares, r=1.0),
}
SHAPE = (6, 3)


def landscape_checks(context: Context) -> list[Check]:
    """Which one-hot matrices are local maxima of which measure."""
    context.note("local maxima")
    sizes = list(partitions(*SHAPE))
    generator = context.generator("local maxima")
    spread = random_logits(context.budget.draws, *SHAPE, generator, widest=30.0).softmax(-1)
    trapped = {
        name: [size for size in sizes if _is_local_maximum(measure, one_hot(size), spread)]
        for name, measure in MEASURES.items()
    }
    counts = {name: len(local) for name, local in trapped.items()}
    expected = (
        counts["CWS r=0.5"] == len(sizes)
        and counts["NS r=0.5"] > 1
        and counts["NS r=1"] <= counts["NS r=0.5"]
        and all([2, 2, 2] in local for local in trapped.values())
    )
    return [
        Check(
            id="local-maxima",
            claim="an ascent may end at unbalanced classes: one-hot matrices are local maxima",
            reference="Sec. 3.3 to 3.5, which speak of optimal solutions only",
            tried=f"all {len(sizes)} class sizes of {SHAPE[0]}x{SHAPE[1]} one-hot matrices; "
            f"{context.budget.draws + _ROW_MOVES} directions into the simplex, steps 1e-3 to 1e-7",
            computed=trapped,
            found="one-hot matrices that are local maxima: "
            + ", ".join(f"{name}: {count} of {len(sizes)}" for name, count in counts.items()),
            explanation="For 0 < r < 1 every one-hot matrix is a strict local maximum of CWS, even "
            "with all rows in one class, and NS and the nuclear norm have unbalanced ones too; "
            "only the global maximum is balanced, so the start decides.",
            **verdict_fields(expected, "paper silent"),
        )
    ]


_ROW_MOVES = SHAPE[0] * (SHAPE[1] - 1)


def _is_local_maximum(measure: Measure, probs: Tensor, spread: Tensor) -> bool:
    """Whether no small step towards a random matrix, or of one row to another class, gains."""
    goals = torch.cat([spread, _row_moves(probs)])
    value = measure(probs)
    for step in (1e-3, 1e-5, 1e-7):
        gain = measure(probs + step * (goals - probs)) - value
        if float(gain.max()) > 1e-13:
            return False
    return True


def _row_moves(probs: Tensor) -> Tensor:
    """The matrices in which one row has gone to another class."""
    rows, classes = probs.shape
    moved = []
    for row in range(rows):
        for label in range(classes):
            if probs[row, label] == 0.0:
                goal = probs.clone()
                goal[row] = 0.0
                goal[row, label] = 1.0
                moved.append(goal)
    return torch.stack(moved)
