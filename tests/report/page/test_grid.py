import dataclasses
from collections.abc import Callable
from pathlib import Path

from equida.bench.store import read_runs
from equida.report.page.grid import arrange, method_title
from equida.training.folder import RunFolder

Writer = Callable[..., Path]


def test_runs_are_in_the_order_of_tasks_systems_and_seeds(write: Writer, runs: Path) -> None:
    for source, target in (("U", "M"), ("M", "U")):
        for method in ("nsm", "source_only", "cdan+nsm"):
            for seed in (1, 0):
                write(method=method, seed=seed, source=source, target=target)
    grid = arrange(read_runs(runs))
    assert [task.name for task in grid.tasks] == ["M2U", "U2M"]
    assert [system.label for system in grid.systems] == ["Source only", "NSM", "CDAN+NSM"]
    assert [entry.seed for entry in grid.finished] == [0, 1] * 6
    assert [entry.number for entry in grid.finished] == list(range(12))


def test_a_sweep_makes_systems_that_say_what_differs(write: Writer, runs: Path) -> None:
    for r in (0.5, 1.0):
        write(overrides=(("r", r), ("trade_off", 2.0)))
    write(method="bnm", overrides=(("trade_off", 1.0),))
    grid = arrange(read_runs(runs))
    assert [system.label for system in grid.systems] == ["BNM", "NSM (r 0.5)", "NSM (r 1)"]


def test_a_recipe_that_differs_only_between_tasks_makes_no_new_system(
    write: Writer, runs: Path
) -> None:
    write(iterations=100)
    write(iterations=300, source="U", target="M")
    assert [system.label for system in arrange(read_runs(runs)).systems] == ["NSM"]


def test_unfinished_and_failed_runs_are_kept_apart(write: Writer, runs: Path) -> None:
    write(seed=0)
    for seed, reason in ((1, None), (2, "the loss is nan")):
        folder = write(seed=seed)
        (folder / "result.json").unlink()
        if reason:
            RunFolder(folder).write_json("failed.json", {"reason": reason})
    grid = arrange(read_runs(runs))
    assert [entry.seed for entry in grid.finished] == [0]
    assert [(e.seed, e.run.failure, e.task.name) for e in grid.open] == [
        (1, None, "M2U"),
        (2, "the loss is nan", "M2U"),
    ]


def test_runs_on_own_data_come_last_under_their_own_head(write: Writer, runs: Path) -> None:
    write(benchmark=None, source="photos", target="clipart")
    write()
    keys = arrange(read_runs(runs)).tasks
    assert [(key.benchmark, key.name) for key in keys] == [
        ("Digits", "M2U"),
        ("own data", "photos2clipart"),
    ]


def test_a_figure_that_a_selection_cannot_give_is_none(write: Writer, runs: Path) -> None:
    write(labelled=False)
    (entry,) = arrange(read_runs(runs)).finished
    assert entry.score("last") is None
    assert entry.figures("oracle") is None
    assert dataclasses.asdict(entry.task)["name"] == "M2U"


def test_titles_are_as_papers_print_them() -> None:
    assert method_title("max_square") == "MaxSquare"
    assert method_title("source_only") == "Source only"
    assert method_title("unheard_of") == "unheard_of"
