"""Published numbers for a benchmark, where somebody has written them down."""

from equida.data.benchmarks import Benchmark
from equida.runs.table import Reference


def published(chosen: Benchmark) -> Reference | None:
    """The paper's numbers for a benchmark; None for users' own data.

    Everything works without the paper's room; its numbers are then left out.
    """
    try:
        from equida.paper.reference import reference
    except ImportError:
        return None
    return reference(chosen.registered_name) if chosen.registered_name else None
