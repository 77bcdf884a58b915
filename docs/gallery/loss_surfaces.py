"""
The losses as surfaces
======================

Two target samples and two classes: sample 1 is class A with probability :math:`p_1`, sample 2 with
probability :math:`p_2`. Each picture shows a loss over both; dark is better. The two good corners
are top left and bottom right, where each sample has a class of its own.
"""

import matplotlib.pyplot as plt
import torch

from equida.losses import bnm, cwsm, max_square, nsm

steps = torch.linspace(0.001, 0.999, 61)
losses = {
    "MaxSquare": max_square,
    "BNM": bnm,
    "CWSM, r = 0.5": cwsm,
    "NSM, r = 0.5": nsm,
}


def surface(loss):
    """The loss at every pair of probabilities; it takes logits, which are log-probabilities."""
    values = torch.empty(len(steps), len(steps))
    for i, p1 in enumerate(steps):
        for j, p2 in enumerate(steps):
            probs = torch.tensor([[p1, 1 - p1], [p2, 1 - p2]])
            values[i, j] = loss(probs.log())
    return values


figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
for ax, (title, loss) in zip(axes, losses.items(), strict=True):
    ax.contourf(steps, steps, surface(loss).T, levels=24, cmap="viridis")
    ax.set(title=title, xlabel="$p_1$", ylabel="$p_2$", aspect="equal")
plt.show()

# %%
# MaxSquare is as content with both samples in one class (bottom left, top right) as with one in
# each. BNM, CWSM and NSM prefer different classes: that is equity, and it is what keeps small
# classes from being swallowed.
