import shutil
from collections.abc import Callable
from pathlib import Path

from equida.report.page.content import arrange
from equida.runs.read import read_runs
from equida.training.folder import RunFolder

Writer = Callable[..., Path]


def test_runs_are_in_the_order_of_tasks_systems_and_seeds(write: Writer, runs: Path) -> None:
    for source, target in (("U", "M"), ("M", "U")):
        for method in ("nsm", "source_only", "cdan+nsm"):
            for seed in (1, 0):
                write(method=method, seed=seed, source=source, target=target)
    content = arrange(read_runs(runs))
    assert [task.title for task in content.tasks] == ["M→U", "U→M"]
    assert [system.label for system in content.systems] == ["Source only", "NSM", "CDAN+NSM"]
    assert [shown.seed for shown in content.finished] == [0, 1] * 6
    assert [shown.number for shown in content.finished] == list(range(12))
    assert [shown.task for shown in content.finished] == [0] * 6 + [1] * 6
    assert [shown.system for shown in content.finished] == [0, 0, 1, 1, 2, 2] * 2


def test_a_sweep_makes_systems_that_say_what_differs(write: Writer, runs: Path) -> None:
    for r in (0.5, 1.0):
        write(overrides=(("r", r), ("trade_off", 2.0)))
    write(method="bnm", overrides=(("trade_off", 1.0),))
    labels = [system.label for system in arrange(read_runs(runs)).systems]
    assert labels == ["BNM", "NSM (r=0.5)", "NSM (r=1)"]


def test_systems_with_equal_titles_are_told_apart(write: Writer, runs: Path) -> None:
    for r in (0.5, 0.50000001):
        write(overrides=(("r", r),))
    content = arrange(read_runs(runs))
    assert [system.label for system in content.systems] == ["NSM (r=0.5)", "NSM (r=0.5) [2]"]
    assert [shown.system for shown in content.finished] == [0, 1]


def test_unfinished_and_failed_runs_are_kept_apart(write: Writer, runs: Path) -> None:
    write(seed=0)
    for seed, reason in ((1, None), (2, "the loss is nan")):
        folder = write(seed=seed)
        (folder / "result.json").unlink()
        if reason:
            RunFolder(folder).write_json("failed.json", {"reason": reason})
    content = arrange(read_runs(runs))
    assert [shown.seed for shown in content.finished] == [0]
    assert [(entry.seed, entry.failure, entry.task) for entry in content.unfinished] == [
        (1, None, "M2U"),
        (2, "the loss is nan", "M2U"),
    ]


def test_a_task_or_system_without_finished_runs_gets_no_place(write: Writer, runs: Path) -> None:
    write()
    (write(method="bnm", source="U", target="M") / "result.json").unlink()
    content = arrange(read_runs(runs))
    assert [task.name for task in content.tasks] == ["M2U"]
    assert [system.label for system in content.systems] == ["NSM"]
    (group,) = content.groups
    assert [column.key for column in group.table("last").columns][:2] == ["M2U", "Equity"]


def test_runs_on_own_data_come_last_under_their_own_title(write: Writer, runs: Path) -> None:
    write(benchmark=None, source="photos", target="clipart")
    write()
    content = arrange(read_runs(runs))
    titles = [content.task_title(number) for number in range(2)]
    assert titles == ["Digits, M→U", "own data, photos2clipart"]


def test_a_benchmark_on_other_data_is_another_group(write: Writer, runs: Path) -> None:
    for digest in ("a" * 64, "b" * 64):
        write(data_sha256=digest)
    content = arrange(read_runs(runs))
    assert [group.title for group in content.groups] == [
        "Digits (data aaaaaaaa)",
        "Digits (data bbbbbbbb)",
    ]
    assert [system.label for system in content.systems] == ["NSM"]
    assert [shown.task for shown in content.finished] == [0, 1]
    assert "Digits (data bbbbbbbb)" in content.groups[1].table("last").caption


def test_own_tasks_with_one_name_and_different_data_are_two(write: Writer, runs: Path) -> None:
    for digest in ("a" * 64, "b" * 64):
        write(benchmark=None, source="photos", target="clipart", data_sha256=digest)
    (group,) = arrange(read_runs(runs)).groups
    assert group.tasks == ("photos2clipart", "photos2clipart (2)")


def test_data_that_moved_stay_one_task(write: Writer, runs: Path) -> None:
    folder = write(seed=0, data_sha256="a" * 64)
    moved = write(seed=1, data_sha256="a" * 64)
    text = (moved / "config.json").read_text()
    (moved / "config.json").write_text(text.replace('"data": null', '"data": "/elsewhere"'))
    assert (folder / "config.json").read_text() != (moved / "config.json").read_text()
    content = arrange(read_runs(runs))
    assert (len(content.groups), len(content.tasks), len(content.systems)) == (1, 1, 1)


def test_a_run_that_was_made_twice_counts_once(write: Writer, runs: Path) -> None:
    shutil.copytree(write(), runs / "copy")
    assert len(arrange(read_runs(runs)).finished) == 1
