"""
Adapting without the source data
================================

The hospital that trained the classifier may not hand out its images. A finished run is enough:
losses that look at target predictions alone adapt it further.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import equida

X, y = load_wine(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)
X_source, X_target, y_source, y_target = train_test_split(
    X, y, train_size=60, stratify=y, random_state=0
)
rng = np.random.default_rng(0)
X_target = X_target * rng.uniform(0.7, 1.3, 13) + rng.normal(size=13)  # other instruments

folder = tempfile.TemporaryDirectory()
brief = {"iterations": 200, "evaluate_every": 20}

# %%
# At home: train on the source alone.
home = equida.adapt(
    (X_source, y_source),
    (X_target, y_target),
    method="source_only",
    recipe_params=brief,
    out=f"{folder.name}/home",
)

# %%
# Elsewhere: only the run and the target. The target's labels draw the curve below, nothing else.
away = equida.adapt(
    None,
    (X_target, y_target),
    from_run=home,
    method="nsm",
    recipe_params=brief,
    out=f"{folder.name}/away",
)
curves = away.curves().dropna(subset=["accuracy"])
plt.plot(curves["step"], curves["accuracy"], label="accuracy")
plt.plot(curves["step"], curves["equity"], label="equity")
plt.axhline(home.accuracy, linestyle=":", color="gray", label="before adaptation")
plt.xlabel("step")
plt.legend()
plt.show()
print(f"{100 * home.accuracy:.1f} % before, {100 * away.accuracy:.1f} % after")
