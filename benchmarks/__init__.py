"""Speed as ratios: every figure is measured beside its named baseline, interleaved, in one run."""
