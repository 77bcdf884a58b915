"""The paper's theorems, example tables and surfaces, recomputed.

`study.run_theory` does all of it; `equida theory` prints and writes what it returns.
"""
