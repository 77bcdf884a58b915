"""
Two folders of images
=====================

The whole way on files: a labelled folder, a folder without labels, features, training, predictions.
The images are digits from installed packages, so that the page needs no download.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import equida
from equida.data import load_domain

folder = tempfile.TemporaryDirectory()
source, target = Path(folder.name, "scanned"), Path(folder.name, "unknown")


def write_images(domain, root, labelled, per_class):
    """Some digits as PNG files, in class folders or all in one."""
    images = load_domain("digits", domain)
    for label, name in enumerate(images.classes):
        inner = root / name if labelled else root
        inner.mkdir(parents=True, exist_ok=True)
        for number in np.flatnonzero(images.labels == label)[:per_class]:
            pixels = (np.asarray(images[int(number)])[0] * 255).astype(np.uint8)
            Image.fromarray(pixels).resize((64, 64)).save(inner / f"{number}.png")


write_images("M", source, labelled=True, per_class=15)
write_images("U", target, labelled=False, per_class=8)

# %%
# One call computes the features of every image with a pretrained network and trains on them.
run = equida.adapt(
    source,
    target,
    features=True,
    out=Path(folder.name, "run"),
    recipe_params={"iterations": 200, "evaluate_every": 50},
)
print(run)

# %%
# The run labels any images, also later and elsewhere: ``equida predict RUN IMAGES`` does the same.
predicted = run.predict(target)
print(predicted.to_frame().head())

figure, axes = plt.subplots(2, 8, figsize=(10, 3), layout="constrained")
rows = predicted.to_frame().iloc[::5]
for ax, (_, row) in zip(axes.flat, rows.iterrows(), strict=False):
    ax.imshow(Image.open(row["image"]), cmap="gray")
    ax.set_title(f"{row['label']} ({row['confidence']:.0%})", fontsize=9)
    ax.axis("off")
plt.show()
