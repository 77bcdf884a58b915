"""Published numbers for a benchmark, where somebody has written them down."""

from equida.data.benchmarks import Benchmark, benchmark
from equida.runs.table import Reference


def published(name: str | Benchmark) -> Reference | None:
    """The paper's numbers for the benchmark of that name; None for users' own data.

    Everything works without the paper's room; its numbers are then left out.
    """
    try:
        from equida.paper.reference import reference
    except ImportError:
        return None
    known = benchmark(name).registered_name
    return None if known is None else reference(known)
