"""A data set: six clouds of points in the plane, and the same clouds turned by 20 degrees."""

import functools

import numpy as np

from equida.data import ArrayDomain, Benchmark, BenchmarkDomain, array_domain

CLASSES = tuple("abcdef")
SAMPLES = 40


def clouds(key: str, degrees: float, seed: int) -> ArrayDomain:
    """The clouds around six corners, turned by an angle."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(CLASSES)), SAMPLES)
    angles = 2 * np.pi * labels / len(CLASSES) + np.radians(degrees)
    corners = 3 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = corners + random.normal(0, 0.6, corners.shape)
    return array_domain(points.astype(np.float32), labels, classes=CLASSES, name=key)


TURNED = Benchmark(
    name="turned",
    title="Turned clouds",
    aliases=("turned clouds",),
    domains=(
        BenchmarkDomain(
            key="P",
            title="Plain",
            folder="plain",
            per_class=(SAMPLES,) * len(CLASSES),
            load=functools.partial(clouds, "P", 0.0, 0),
        ),
        BenchmarkDomain(
            key="T",
            title="Turned",
            folder="turned",
            per_class=(SAMPLES,) * len(CLASSES),
            load=functools.partial(clouds, "T", 20.0, 1),
        ),
    ),
    classes=CLASSES,
    tasks=("P2T", "T2P"),
    page="",
    obtain="nothing: it is computed",
    layout="no folder",
)
