"""
Equity and discriminability during training
===========================================

Handwritten digits of two collections: a classifier for the MNIST digits meets the UCI digits. Two
figures that need no labels show what each method does to the predictions on the target.
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
        recipe_params={"iterations": 300, "evaluate_every": 30},
        out=f"{folder.name}/{method}",
    )
    for method in ("source_only", "max_square", "nsm")
}

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for method, run in runs.items():
    curves = run.curves()
    for ax, name in zip(axes, ("discriminability", "equity", "accuracy"), strict=True):
        shown = curves.dropna(subset=[name])
        ax.plot(shown["step"], shown[name], label=method)
        ax.set(title=name, xlabel="step", ylim=(0, 1))
axes[0].legend()
plt.show()

# %%
# MaxSquare makes the predictions sure and leaves the classes as unequal as it found them; NSM does
# both. Accuracy is shown because these digits have labels: they were used for this curve alone.
for method, run in runs.items():
    print(f"{method:12} {100 * run.accuracy:.1f} %")
