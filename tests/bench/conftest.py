"""A toy Office-31: all 31 classes, a few rows each, clusters that move between domains."""

from pathlib import Path

import numpy as np
import pytest

from equida.data.benchmarks import BENCHMARKS


@pytest.fixture(scope="session")
def toy_office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A feature file that the benchmark office31 loads."""
    return write_toy(tmp_path_factory.mktemp("toy") / "office.npz")


def write_toy(file: Path, rows: int = 4, width: int = 24) -> Path:
    """Clusters around 31 centres, each domain a little elsewhere."""
    generator = np.random.default_rng(0)
    classes = BENCHMARKS["office31"].classes
    centres = 3.0 * generator.standard_normal((len(classes), width))
    labels = np.repeat(np.arange(len(classes)), rows)
    arrays = {"classes": np.array(classes)}
    for domain in ("amazon", "dslr", "webcam"):
        shift = generator.standard_normal(width)
        noise = generator.standard_normal((len(labels), width))
        arrays[f"{domain}_x"] = (centres[labels] + shift + noise).astype(np.float32)
        arrays[f"{domain}_y"] = labels
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file
