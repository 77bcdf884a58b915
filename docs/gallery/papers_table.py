"""
The paper's table
=================

Methods, tasks and seeds, done in parallel and resumable, with one table at the end. Here on digits
and with a short training, so that the page is built in seconds; ``make demo`` and
``equida bench office31 --data DIR --features --methods all --seeds 3 --out runs`` do it in full,
with the paper's numbers beside.
"""

import tempfile

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
table  # noqa: B018

# %%
# The same table as a data frame, in LaTeX (``table.to_latex()``) or as a picture:
frame = table.to_frame()
print(frame)
