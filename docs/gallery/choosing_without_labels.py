"""
Choosing without labels
=======================

Every run records scores that need no target labels. This page shows how one of them follows the
accuracy that nobody would know, over the steps of one training and over methods.
"""

import tempfile

import matplotlib.pyplot as plt

import equida

folder = tempfile.TemporaryDirectory()
runs = {
    method: equida.adapt(
        "M",
        "U",
        dataset="digits",
        method=method,
        recipe_params={"iterations": 240, "evaluate_every": 30},
        out=f"{folder.name}/{method}",
    )
    for method in ("max_square", "cwsm", "nsm")
}

# %%
# What each rule would have picked in the run of NSM. Only the oracle looks at target labels.
for name, pick in runs["nsm"].picks.items():
    print(f"{name:28} step {pick.step:4}   {100 * pick.accuracy:.1f} %")

# %%
# Each dot is one step of one method.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, score in zip(axes, ("entropy", "bnm"), strict=True):
    for method, run in runs.items():
        curves = run.curves().dropna(subset=["accuracy", score])
        ax.plot(curves[score], curves["accuracy"], "o", label=method)
    ax.set(xlabel=f"score: {score}")
axes[0].set_ylabel("accuracy")
axes[0].legend()
plt.show()
