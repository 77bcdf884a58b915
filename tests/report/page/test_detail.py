from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from equida.report.page.build import baselines
from equida.report.page.content import arrange
from equida.report.page.detail import LINES, MISTAKES, curves, describe_run
from equida.report.page.pictures import Pictures
from equida.runs.read import read_runs

Writer = Callable[..., Path]


def test_mistakes_are_the_surest_wrong_predictions(write: Writer, runs: Path) -> None:
    write(rows=60, right=40)
    (shown,) = arrange(read_runs(runs)).finished
    told = describe_run(shown, None, Pictures(), mapped=False)
    assert told["wrong"] == 20
    assert len(told["mistakes"]) == MISTAKES
    sure = shown.run.predictions.probs.max(1).values[40:].numpy()
    expected = [f"row {40 + i}" for i in np.argsort(-sure)[:MISTAKES]]
    assert [one["sample"] for one in told["mistakes"]] == expected
    assert all(one["predicted"] == (one["truth"] + 1) % 10 for one in told["mistakes"])


def test_class_sizes_and_changes_are_counted(write: Writer, runs: Path) -> None:
    write(method="source_only", classes=("a", "b"), rows=8, right=4)
    write(method="nsm", classes=("a", "b"), rows=8, right=7)
    content = arrange(read_runs(runs))
    base, shown = content.finished
    told = describe_run(shown, baselines(content)[shown.number], Pictures(), mapped=False)
    # The last row is of class b and predicted as a.
    assert told["predicted"] == [5, 3]
    assert told["true"] == [4, 4]
    assert told["change"] == [0.5, 0.25]
    assert sorted(told["confusion"]) == [[0, 0, 4], [1, 0, 1], [1, 1, 3]]
    assert base.number not in baselines(content)
    assert told["baseline_seed"] == 0


def test_the_baseline_has_the_same_seed_where_there_is_one(write: Writer, runs: Path) -> None:
    for seed in (0, 1):
        write(method="source_only", seed=seed)
    for seed in (1, 2):
        write(method="nsm", seed=seed)
    content = arrange(read_runs(runs))
    found = [baselines(content)[shown.number] for shown in content.finished[2:]]
    assert [other.seed for other in found] == [1, 0]


def test_without_labels_nothing_that_needs_them_is_there(write: Writer, runs: Path) -> None:
    write(labelled=False)
    (shown,) = arrange(read_runs(runs)).finished
    told = describe_run(shown, None, Pictures(), mapped=True)
    assert not {"confusion", "true", "change", "mistakes", "wrong"} & set(told)
    assert "truth" not in told["map"]
    assert sum(told["predicted"]) == 60


@pytest.mark.parametrize("content", [b"", b"garbage that is no tensor file", None])
def test_damaged_predictions_cost_their_panels_only(
    write: Writer, runs: Path, content: bytes | None
) -> None:
    file = write() / "predictions.safetensors"
    file.unlink() if content is None else file.write_bytes(content)
    (shown,) = arrange(read_runs(runs)).finished
    told = describe_run(shown, None, Pictures(), mapped=True)
    assert "predictions.safetensors" in told["trouble"]
    assert "map" not in told
    assert told["true"] == [6] * 10


def test_long_curves_are_thinned_and_what_is_no_number_is_left_out() -> None:
    log = [{"step": i, "terms": {"a": float("inf") if i == 0 else i / 3}} for i in range(1000)]
    told = curves(log, "accuracy")
    assert len(told["steps"]) == 250 <= LINES
    assert (told["thinned"], told["logged"]) == (4, 1000)
    assert told["terms"]["a"][:2] == [None, 1.3333]
    assert told["figures"] == {}
