"""The front door in a real notebook kernel: progress shows there, and tables are drawn as HTML."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
pytest.importorskip("ipykernel", reason="needs ipykernel")

ADAPT = """
import numpy as np, equida
rng = np.random.default_rng(0)
centres = 3 * rng.normal(size=(3, 6))
y = np.arange(60) % 3
X, X_t = (centres[y] + shift + rng.normal(size=(60, 6)) for shift in (0.0, 0.7))
small = {"iterations": 40, "evaluate_every": 10, "batch_size": 8, "bottleneck": 8}
run = equida.adapt((X, y), (X_t, y), recipe_params=small, out="run")
run
"""
CURVES = "run.curves()"
BENCH = """
equida.bench("digits", methods=["source_only", "nsm"], tasks=["M2U"], seeds=1, jobs=1, out="runs",
             recipe_params={"iterations": 4, "evaluate_every": 2})
"""
MISTAKE = """
try:
    equida.adapt("nowhere/", "clipart/")
except equida.errors.InputError as error:
    print(error)
"""


def test_a_notebook_shows_progress_and_results(tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell(code) for code in (ADAPT, CURVES, BENCH, MISTAKE)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    adapt, curves, bench, mistake = (cell["outputs"] for cell in notebook.cells)
    shown = [output["data"]["text/html"] for output in adapt if output.output_type != "stream"]
    assert any("<progress" in text and "40 of 40" in text for text in shown)
    assert not [output for output in adapt if output.output_type == "stream"]
    assert "accuracy" in shown[-1]
    assert "equity" in curves[-1]["data"]["text/html"]
    assert "<caption>Accuracy (%) on Digits" in bench[-1]["data"]["text/html"]
    assert "clipart does not exist" in mistake[-1]["text"]
