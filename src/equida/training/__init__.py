"""One training loop for every method: recipe, optimiser, evaluation, checkpoints, processes."""
