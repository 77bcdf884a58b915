"""
Two processes, one gradient
===========================

A batch loss of the share that one process has is not the batch loss. ``global_batch`` gathers the
predictions, so that N processes have the gradient of one. The program of this page is
``examples/ddp.py``; it starts two processes, which is why it runs as a script.
"""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt

import equida

root = Path(equida.__file__).parents[2]
done = subprocess.run(
    [sys.executable, "-W", "ignore", root / "examples" / "ddp.py"],
    capture_output=True,
    text=True,
    check=True,
)
print(done.stdout)

# %%
# The distance to the gradient of a single process with the same rows, on a logarithmic scale.
errors = {
    line.split()[0]: float(re.findall(r"\d\.?\d*e[+-]\d+|0\.\d+", line)[-1])
    for line in done.stdout.splitlines()
    if re.search(r"\d", line)
}
plt.barh(list(errors), list(errors.values()), color=["#d55e00", "#0072b2"])
plt.xscale("log")
plt.xlabel("relative error of the gradient in two processes")
plt.tight_layout()
plt.show()
