"""
A data set of your own
======================

A folder of domain folders of class folders is a benchmark: domains, classes and tasks are found,
and the table is the one of the others. Nothing is registered and no code is written.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import equida
from equida.data import load_domain

folder = tempfile.TemporaryDirectory()
root = Path(folder.name, "my_digits")
for domain, title in (("M", "mnist"), ("U", "uci")):
    images = load_domain("digits", domain)
    for label in range(4):
        inner = root / title / f"digit {label}"
        inner.mkdir(parents=True)
        for number in np.flatnonzero(images.labels == label)[:20]:
            pixels = (np.asarray(images[int(number)])[0] * 255).astype(np.uint8)
            Image.fromarray(pixels).resize((64, 64)).save(inner / f"{number}.png")

# %%
# What is in the folder: two domains of four classes each.
figure, axes = plt.subplots(2, 8, figsize=(10, 3), layout="constrained")
for row, domain in zip(axes, sorted(root.iterdir()), strict=True):
    for number, ax in enumerate(row):
        inner = sorted(domain.iterdir())[number // 2]
        ax.imshow(Image.open(sorted(inner.iterdir())[number % 2]), cmap="gray")
        ax.set_title(f"{domain.name}/{inner.name}", fontsize=8)
        ax.axis("off")
plt.show()

# %%
# Features are computed once; then every method runs on every ordered pair of domains.
table = equida.bench(
    root,
    methods=["source_only", "nsm"],
    seeds=2,
    features=True,
    recipe_params={"iterations": 100, "evaluate_every": 50},
    out=Path(folder.name, "runs"),
)
table

# %%
# The same figures as bars, with their deviation over the seeds.
frame = table.to_frame()
frame.xs("mean", axis=1, level=1).T.plot.bar(
    yerr=frame.xs("std", axis=1, level=1).T,
    capsize=3,
    rot=0,
    figsize=(8, 3.4),
    color=["#999999", "#0072b2"],
    ylabel="accuracy (%)",
    ylim=(0, 105),
)
plt.legend(loc="upper right", ncols=2)
plt.tight_layout()
plt.show()

# %%
# ``equida doctor my_digits/ --write-toml`` writes a ``dataset.toml`` in which titles, the order of
# domains, tasks and the metric can be set.
