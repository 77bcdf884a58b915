"""Comparisons: which runs a grid has, doing them here or on a cluster, and watching them."""
