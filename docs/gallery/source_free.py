"""
Adapting without the source data
================================

The hospital that trained the classifier may not hand out its images. A finished run is enough:
losses that look at target predictions alone adapt it further.

Here the source is the 1,797 digits of scikit-learn (UCI), grey images of 8 by 8 pixels, and the
target 5,000 digits of MNIST: other people, other pens, sharper images. Recipe and method are the
defaults, with a shorter training.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import equida
from equida.data import load_domain

folder = tempfile.TemporaryDirectory()
brief = {"iterations": 300, "evaluate_every": 25}

# %%
# At home: train on the source alone.
home = equida.adapt(
    "uci",
    "mnist",
    dataset="digits",
    method="source_only",
    recipe_params=brief,
    out=f"{folder.name}/home",
)

# %%
# Elsewhere: only the run and the target. The target's labels draw the picture below, nothing else.
away = equida.adapt(
    None,
    "mnist",
    dataset="digits",
    from_run=home,
    method="nsm",
    recipe_params=brief,
    out=f"{folder.name}/away",
)
print(f"{100 * home.accuracy:.1f} % before, {100 * away.accuracy:.1f} % after")

# %%
# On the left, the target's accuracy while the network adapts; on the right, for each digit one
# sample that was read wrongly before and is read rightly after.
target = load_domain("digits", "mnist")
pixels = np.stack([np.asarray(target[number])[0] for number in range(len(target))])
before, after = (
    np.asarray(run.predict(pixels[:, None]).labels).astype(int) for run in (home, away)
)
mended = [
    np.flatnonzero((target.labels == digit) & (before != digit) & (after == digit))
    for digit in range(10)
]

figure = plt.figure(figsize=(10, 3.6), layout="constrained")
left, right = figure.subfigures(1, 2)
ax = left.subplots()
curves = away.curves().dropna(subset=["accuracy"])
ax.axhline(100 * home.accuracy, linestyle=":", color="gray", label="before")
ax.plot(curves["step"], 100 * curves["accuracy"], color="#0072b2", label="adapted without source")
ax.set(xlabel="step", ylabel="accuracy on MNIST (%)", ylim=(0, 100))
ax.legend(loc="lower right")
for ax, found in zip(right.subplots(2, 5).flat, mended, strict=True):
    ax.axis("off")
    if len(found):
        ax.imshow(pixels[found[0]], cmap="gray")
        ax.set_title(f"{before[found[0]]} → {after[found[0]]}", fontsize=10)
plt.show()
