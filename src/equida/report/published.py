"""Published numbers for a benchmark, where somebody has written them down."""

from equida.data.benchmarks import benchmark
from equida.runs.table import Reference


def published(name: str) -> Reference | None:
    """The paper's numbers for the benchmark of that name, or None.

    Everything works without the paper's room; its numbers are then left out.
    """
    try:
        from equida.paper.reference import reference
    except ImportError:
        return None
    return reference(benchmark(name).name)
