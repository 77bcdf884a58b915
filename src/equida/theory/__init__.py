"""The paper's theorems, example tables and surfaces, recomputed."""
