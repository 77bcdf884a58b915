"""
A target whose classes are not equally frequent
===============================================

The paper's losses pull predictions towards classes of one size. Real targets have rare classes.
``prior="estimate"`` estimates the shares without labels and aims at those instead.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import equida

# %%
# The source is balanced. In the target, each digit is rarer than the one before it.
X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
source, rest = order[:900], order[900:]
sizes = np.geomspace(80, 8, 10).astype(int)
target = np.concatenate([rest[y[rest] == digit][: sizes[digit]] for digit in range(10)])
X_target = X[target] + rng.normal(scale=3.0, size=(len(target), X.shape[1]))
shares = np.bincount(y[target], minlength=10) / len(target)

# %%
folder = tempfile.TemporaryDirectory()
runs = {
    prior: equida.adapt(
        (X[source], y[source]),
        (X_target, y[target]),
        method="bnm",
        method_params={"prior": prior},
        recipe_params={"iterations": 300, "evaluate_every": 100},
        out=f"{folder.name}/{prior}",
    )
    for prior in ("uniform", "estimate")
}

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
places = np.arange(10)
ax.bar(places, shares, color="#cccccc", label="true shares, which nobody would know")
for prior, run in runs.items():
    predicted = np.asarray(run.predict(X_target).labels).astype(int)
    found = np.bincount(predicted, minlength=10) / len(predicted)
    ax.plot(places, found, "o-", label=f"predicted, prior={prior}: {100 * run.accuracy:.1f} %")
ax.set(xlabel="digit", ylabel="share of the target", xticks=places)
ax.legend()
plt.show()
