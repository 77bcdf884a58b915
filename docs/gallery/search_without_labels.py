"""
A scikit-learn search without target labels
===========================================

``EquidaClassifier`` is a scikit-learn estimator. ``equida.scorers`` has scorers that look at
predictions for the target and at none of its labels, so that a search can choose for the target.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, train_test_split

from equida import EquidaClassifier, scorers

X, y = load_wine(return_X_y=True)
X_source, X_target, y_source, y_target = train_test_split(
    X, y, train_size=60, stratify=y, random_state=0
)
rng = np.random.default_rng(0)
X_target = X_target * rng.uniform(0.7, 1.3, 13) + 1.5 * X.std(0) * rng.normal(size=13)

# %%
# The weight of NSM, chosen by the nuclear norm of the predictions for the target.
model = EquidaClassifier("nsm", iterations=100, random_state=0)
weights = [0.0, 0.25, 0.5, 1.0, 2.0]
search = GridSearchCV(model, {"trade_off": weights}, scoring=scorers.bnm, cv=3)
search.fit(X_source, y_source, X_target=X_target)
print(search.best_params_)

# %%
# The labels of the target were kept aside; here they show whether the choice was a good one.
truth = [
    EquidaClassifier("nsm", iterations=100, random_state=0, trade_off=weight)
    .fit(X_source, y_source, X_target=X_target)
    .score(X_target, y_target)
    for weight in weights
]
figure, ax = plt.subplots(layout="constrained")
ax.plot(weights, search.cv_results_["mean_test_score"], "o-", label="score without labels")
ax.plot(weights, truth, "s--", label="accuracy, which nobody would know")
ax.axvline(search.best_params_["trade_off"], color="gray", linestyle=":")
ax.set(xlabel="trade_off")
ax.legend()
plt.show()
