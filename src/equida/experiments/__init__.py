"""The grid of runs, the store of their results, and the paper's numbers as data."""
