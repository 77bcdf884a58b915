"""A run that was read stays what it is, wherever the process goes and whatever lies there."""

import os
from pathlib import Path

import numpy as np
import pytest
from tests.small_data import CALL, blobs

import equida
from equida.errors import InputError


def test_a_run_stays_the_run_that_it_is(own_folder: Path) -> None:
    """Before: after a change of folder it was whatever lay at the same path there, or empty."""
    data = blobs()
    first = equida.adapt((data.source, data.labels), data.target, out="run", **CALL)
    expected = first.predict(data.target)
    Path("other").mkdir()
    os.chdir("other")
    equida.adapt((data.source, (data.labels + 1) % 4), data.target, out="run", **CALL)
    np.testing.assert_array_equal(first.predict(data.target).probs, expected.probs)
    os.chdir(own_folder)
    Path("run").rename("moved")
    with pytest.raises(InputError, match="run is gone; load the run from where it is now"):
        first.curves()
    assert equida.load_run("moved").curves() is not None
