"""Wines of three growers: 36 labelled ones, and 142 that other instruments have analysed."""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from equida import EquidaClassifier

X, y = load_wine(return_X_y=True)
accuracies = []
for seed in range(5):
    X_source, X_target, y_source, y_target = train_test_split(
        X, y, train_size=36, stratify=y, random_state=seed
    )
    # Each of the other instruments has a gain of its own, and an offset.
    rng = np.random.default_rng(seed)
    X_target = X_target * rng.uniform(0.7, 1.3, 13) + 1.5 * X.std(0) * rng.normal(size=13)

    nsm = EquidaClassifier("nsm", iterations=200, random_state=seed)
    source_only = EquidaClassifier("source_only", iterations=200, random_state=seed)
    accuracies.append([
        source_only.fit(X_source, y_source).score(X_target, y_target),
        source_only.fit(X_source, y_source, X_target=X_target).score(X_target, y_target),
        nsm.fit(X_source, y_source, X_target=X_target).score(X_target, y_target),
    ])  # fmt: skip

ways = "target not seen", "target in the statistics only", "nsm"
for way, mean, deviation in zip(
    ways, np.mean(accuracies, 0), np.std(accuracies, 0, ddof=1), strict=True
):
    print(f"{way:30} {100 * mean:.1f} ± {100 * deviation:.1f} %")
