"""The regret that `python -m benchmarks validators` prints, on candidates made by hand."""

import pytest

from benchmarks import validators
from benchmarks.validators import Candidate
from equida.evaluation.validators import VALIDATORS


def candidate(name: str, accuracies: list[float], scores: list[float]) -> Candidate:
    steps = enumerate(zip(accuracies, scores, strict=True), 1)
    history = [
        {"step": 100.0 * i, "accuracy": a, **dict.fromkeys(VALIDATORS, s)} for i, (a, s) in steps
    ]
    return Candidate(name, history, [int(accuracies[-1] > 60)] * 3)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    monkeypatch.setattr(validators, "METHODS", ("source_only", "nsm"))
    monkeypatch.setattr(validators, "GRIDS", {"nsm": ({}, {"r": 1.0})})
    group = [
        candidate("source_only", [50.0, 52.0], [0.1, 0.9]),
        candidate("nsm", [70.0, 66.0], [0.3, 0.2]),
        candidate("nsm r=1", [60.0, 69.0], [0.2, 0.2]),
    ]
    made = validators.regrets([group])
    columns = [list(column.cells) for column in made.columns]
    return {str(name): [str(cell) for cell in row] for name, *row in zip(*columns, strict=True)}


def test_regret_is_what_the_best_choice_had_more(table: dict[str, list[str]]) -> None:
    """Steps: 0, 0 and 0 (the later of equal scores). Settings: equal scores, the first one, as in a
    search: 69 - 66. Over methods and over all, the highest score is that of the worst: 66 - 52 and
    69 - 52."""
    assert table["entropy"] == ["0.00", "3.00", "14.00", "17.00"]


def test_without_a_choice_it_is_the_last_step_and_the_default(table: dict[str, list[str]]) -> None:
    """Steps: 0, 4 and 0. Settings: 69 - 66. Methods: NSM is the best; over all 69 - 66."""
    assert table[validators.NO_CHOICE] == ["1.33", "3.00", "0.00", "3.00"]


def test_the_majority_of_candidates_chooses(table: dict[str, list[str]]) -> None:
    """Both settings of NSM agree with each other: the first of them, 66, is taken. Of two methods
    that differ, the majority is the lower class, which is source only's."""
    assert table[validators.ENSEMBLE] == ["", "3.00", "14.00", "3.00"]
