"""Domains, tasks, the benchmarks, transforms and the feature cache."""
