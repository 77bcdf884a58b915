"""Interleaved medians: the only figures that mean something on a shared machine."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping


def medians(
    calls: Mapping[str, Callable[[], object]], seconds: float = 3.0, least: int = 7
) -> dict[str, float]:
    """Median seconds of each call.

    The calls take turns, and each round starts with another one, so that a slow moment of the
    machine and what the call before left in the caches fall on all of them alike.
    """
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        calls[name]()
    gc.collect()
    gc.disable()
    try:
        end = time.perf_counter() + seconds
        turn = 0
        while time.perf_counter() < end or turn < least:
            # A stride that changes too, so that nobody always follows the same neighbour.
            stride = 1 + turn % max(1, len(names) - 1)
            order = sorted(range(len(names)), key=lambda k: (k * stride + turn) % len(names))
            for name in (names[k] for k in order):
                start = time.perf_counter()
                calls[name]()
                times[name].append(time.perf_counter() - start)
            turn += 1
    finally:
        gc.enable()
    return {name: statistics.median(values) for name, values in times.items()}
