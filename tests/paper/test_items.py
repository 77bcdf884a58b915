"""The items: which runs they are made from, and what they say about their number."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from equida.data.benchmarks import BENCHMARKS
from equida.experiments.grid import Grid
from equida.paper.items import PaperContext, PaperItem, choose_groups, paper_command
from equida.paper.result_tables import result_tables
from equida.runs.read import read_runs

TASKS = BENCHMARKS["office31"].tasks
Writer = Callable[..., None]
Maker = Callable[..., Grid]
ContextOf = Callable[[Path], PaperContext]


def test_the_status_counts_seeds(
    tmp_path: Path, write_grid: Writer, grid: Maker, context_of: ContextOf
) -> None:
    write_grid(tmp_path, grid(("nsm",), TASKS, (0,)))
    write_grid(tmp_path, grid(("nsm",), ("A2W",), (1, 2)))
    office = result_tables(context_of(tmp_path))[0]
    assert office.status == "7 of 77, 1 to 3 seeds"
    assert not PaperItem("", "", 77, 77, seeds=(1, 3)).complete
    assert PaperItem("", "", 77, 77, seeds=(1, 3)).status == "77 of 77, 1 to 3 seeds"
    assert PaperItem("", "", 77, 77, seeds=(3, 3)).status == "complete, 3 seeds"
    assert PaperItem("", "", 0, 77).status == "missing"


def test_of_two_data_sets_of_one_name_the_one_with_most_runs_counts(
    tmp_path: Path, write_grid: Writer, grid: Maker
) -> None:
    """Data are known by their digest: the same place with other data is another group."""
    few, many = (dataclasses.replace(grid(("nsm",), TASKS, (0,)), data_sha256=d) for d in "ab")
    write_grid(tmp_path, dataclasses.replace(few, tasks=("A2W",)))
    write_grid(tmp_path, many)
    used, left_out = choose_groups(read_runs(tmp_path))
    assert len(used["office31"].finished) == len(TASKS)
    assert [len(group.finished) for group in left_out] == [1]


def test_data_that_were_moved_are_the_same_data(
    tmp_path: Path, write_grid: Writer, grid: Maker
) -> None:
    here = dataclasses.replace(grid(("nsm",), TASKS, (0,)), data_sha256="a")
    write_grid(tmp_path, here)
    write_grid(tmp_path, dataclasses.replace(here, data="/moved/f.npz", seeds=(1,)))
    used, left_out = choose_groups(read_runs(tmp_path))
    assert len(used["office31"].finished) == 2 * len(TASKS)
    assert left_out == []


def test_runs_from_runs_and_on_own_data_are_none_of_the_papers(
    tmp_path: Path, write_grid: Writer, grid: Maker
) -> None:
    write_grid(tmp_path, grid(("nsm",), ("A2W",), (0,)))
    [run] = read_runs(tmp_path)
    assert run.config.task is not None
    continued = dataclasses.replace(run.config, from_run="runs/first")
    own = dataclasses.replace(run.config, task=dataclasses.replace(run.config.task, benchmark=None))
    runs = [dataclasses.replace(run, config=config) for config in (continued, own)]
    assert choose_groups(runs) == ({}, [])


def test_the_command_for_the_document_names_what_differs_from_the_default() -> None:
    words = paper_command(
        [Path("a"), Path("b c")], Path("out"), select="oracle", theory=Path("t.json")
    )
    assert words == "equida paper a 'b c' --out out --select oracle --theory t.json"


def test_a_learning_rate_that_some_tasks_have_anyway_does_not_split_a_grid(
    tmp_path: Path, write_grid: Writer, grid: Maker
) -> None:
    """The paper's recipe has 3e-4 on some tasks of Office-31 and 1e-3 on the others."""
    changes = {"iterations": 4, "learning_rate": 3e-4}
    paper = dataclasses.replace(
        grid(("nsm",), TASKS, (0,)), recipe="paper", recipe_changes=changes, data_sha256="a"
    )
    write_grid(tmp_path, paper)
    used, left_out = choose_groups(read_runs(tmp_path))
    assert len(used["office31"].finished) == len(TASKS)
    assert left_out == []
