"""One-hot matrices by their class sizes: closed forms, balance, and all of them."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor


def balanced_sizes(rows: int, classes: int) -> list[int]:
    """Class sizes that differ by at most 1, largest first: the optimum that the paper proves.

    >>> balanced_sizes(7, 3), balanced_sizes(2, 3)
    ([3, 2, 2], [1, 1, 0])
    """
    least, more = divmod(rows, classes)
    return [least + 1] * more + [least] * (classes - more)


def partitions(rows: int, classes: int, largest: int | None = None) -> Iterator[list[int]]:
    """Every multiset of class sizes of `rows` one-hot rows, none above `largest`, largest first.

    >>> list(partitions(4, 2))
    [[4, 0], [3, 1], [2, 2]]
    """
    if rows == 0:
        yield [0] * classes
        return
    for first in range(min(rows, largest or rows), (rows - 1) // classes, -1):
        for rest in partitions(rows - first, classes - 1, first):
            yield [first, *rest]


def compositions(rows: int, classes: int) -> Iterator[list[int]]:
    """Every vector of class sizes of `rows` one-hot rows, where classes are told apart.

    >>> list(compositions(2, 2))
    [[0, 2], [1, 1], [2, 0]]
    """
    if classes == 1:
        yield [rows]
        return
    for first in range(rows + 1):
        for rest in compositions(rows - first, classes - 1):
            yield [first, *rest]


def one_hot(sizes: Sequence[int]) -> Tensor:
    """A one-hot matrix (float64) with these class sizes.

    >>> one_hot([2, 1]).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return torch.eye(len(sizes), dtype=torch.float64)[labels]


def nuclear_norm_of(sizes: Tensor) -> Tensor:
    """sum_c sqrt(n_c) (Eq. 8)."""
    return sizes.sqrt().sum(-1)


def cws_of(sizes: Tensor, r: float, relative: Tensor | float = 1.0) -> Tensor:
    """1/C sum_c (C q_c)^r n_c^(1-r), an absent class counting 0 (Eq. 25); `relative` is C q_c."""
    terms = torch.where(sizes > 0, sizes ** (1.0 - r), 0.0)
    return (terms * torch.as_tensor(relative, dtype=sizes.dtype) ** r).mean(-1)


def ns_of(sizes: Tensor, alpha: float, eps: float, relative: Tensor | float = 1.0) -> Tensor:
    """B / (sum_c (n_c^2 - n_c) / (C q_c) + alpha B) + eps B (Eq. 41); `relative` is C q_c.

    r makes no difference at one-hot rows.
    """
    rows = sizes.sum(-1)
    weights = 1.0 / torch.as_tensor(relative, dtype=sizes.dtype)
    return rows / (((sizes**2 - sizes) * weights).sum(-1) + alpha * rows) + eps * rows
