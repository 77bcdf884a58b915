"""
The paper's table
=================

Methods, tasks and seeds, done in parallel and resumable, with one table at the end. Here on digits
and with a short training, so that the page is built in seconds; ``make demo`` and
``equida bench office31 --data DIR --features --methods all --seeds 3 --out runs`` do it in full,
with the paper's numbers beside.
"""

import tempfile

import matplotlib.pyplot as plt

import equida

folder = tempfile.TemporaryDirectory()
table = equida.bench(
    "digits",
    methods=["source_only", "max_square", "bnm", "cwsm", "nsm"],
    tasks=["M2U"],
    seeds=2,
    recipe_params={"iterations": 200, "evaluate_every": 100},
    measures=True,
    out=folder.name,
)
table

# %%
# The same table as a data frame (``table.to_latex()`` writes it for a paper), and as a picture:
# accuracy on the left; on the right the equity and the discriminability of the same predictions.
# Predictions of source only are neither spread over all classes nor certain, and fewest of them
# are right; each method moves them up and to the right. Two seeds and a short training are too
# little to rank the methods among each other.
frame = table.to_frame()
mean, deviation = (frame.xs(name, axis=1, level=1) for name in ("mean", "std"))
colours = ["#999999", "#e69f00", "#009e73", "#56b4e9", "#0072b2"]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.bar(mean.index, mean["M→U"], yerr=deviation["M→U"], capsize=3, color=colours)
left.set(ylabel="accuracy on M→U (%)", ylim=(0, 105))
left.tick_params(axis="x", rotation=20)
for colour, (name, row) in zip(colours, mean.iterrows(), strict=True):
    right.scatter(row["Equity"], row["Discriminability"], s=80, color=colour, label=name)
right.set(xlabel="equity", ylabel="discriminability")
right.legend()
plt.show()
