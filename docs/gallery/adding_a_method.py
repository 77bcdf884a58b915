"""
A method of your own
====================

A method is a class that returns named, weighted terms. The loop adds them to the cross-entropy of
the source, and the command line, the record of the run and the search space come from its
dataclass.
"""

import tempfile
from dataclasses import dataclass

import matplotlib.pyplot as plt
import torch

import equida
from equida.methods import Method, register, search

# %%
# Here: the mean features of both domains should agree (the simplest alignment there is).


@dataclass(frozen=True)
class MeansConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight against source cross-entropy."""


@register("means", MeansConfig, reference="this page")
class Means(Method):
    """Match the mean features of both domains."""

    def forward(self, source, labels, target, progress):
        distance = source.features.mean(0) - target.features.mean(0)
        return {"means": self.config.trade_off * torch.square(distance).sum()}


# %%
# From here on it is a method like any other, also in a composition.
folder = tempfile.TemporaryDirectory()
for method in ("source_only", "means", "means+nsm"):
    run = equida.adapt(
        "M",
        "U",
        dataset="digits",
        method=method,
        recipe_params={"iterations": 200, "evaluate_every": 25},
        out=f"{folder.name}/{method}",
    )
    curves = run.curves().dropna(subset=["accuracy"])
    plt.plot(curves["step"], curves["accuracy"], label=method)
plt.xlabel("step")
plt.ylabel("accuracy on the target")
plt.legend()
plt.show()
