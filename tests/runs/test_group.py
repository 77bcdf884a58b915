"""Which runs stand in one table, and what sets them apart in it."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equida.data.spec import DataSpec
from equida.runs.group import group_runs, split_by_setting
from equida.runs.read import Run
from equida.training.config import RunConfig
from equida.training.recipe import recipe


def run(
    path: str,
    method: str = "nsm",
    task: str = "A2W",
    *,
    seed: int = 0,
    digest: str = "d1",
    data: str = "/here/office.npz",
    name: str = "features",
    changes: Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
    benchmark: str | None = "office31",
    finished: bool = True,
) -> Run:
    source, target = task.split("2")
    config = RunConfig(
        method,
        recipe(name, changes, benchmark=benchmark, task=task),
        DataSpec(source, target, benchmark, data if benchmark else None),
        overrides=dict(overrides or {}),
        data_sha256=digest,
        seed=seed,
        recipe_name=name,
        recipe_changes=dict(changes or {}),
    )
    last = {"step": 4.0, "accuracy": 0.5, "equity": 0.7, "discriminability": 0.9}
    result = {"task": task, "metric": "accuracy", "kept": "last", "last": last, "picks": {}}
    return Run(Path(path), config, result if finished else None)


def test_data_count_by_digest_and_never_by_path() -> None:
    """Moving the data must not split a grid."""
    (group,) = group_runs([run("r/1"), run("r/2", task="D2W", data="/elsewhere/renamed.npz")])
    assert group.tasks == ("A2W", "D2W")
    two = group_runs([run("r/1"), run("r/2", digest="d2")])
    assert [len(group.entries) for group in two] == [1, 1]


def test_an_unfinished_run_is_named_by_its_folders() -> None:
    left = run("r/1", task="/data/mugs2/data/pens", benchmark=None, finished=False)
    assert left.task == "mugs2pens"
    source_free = run("r/2", task="2/data/pens", benchmark=None, finished=False)
    assert source_free.task == "pens"
    assert group_runs([left])[0].tasks == ("mugs2pens",)


def test_a_learning_rate_that_the_user_sets_does_not_split_a_grid() -> None:
    """The paper's recipe has 3e-4 on A2D and 1e-3 on A2W; here the user asks for 3e-4 on both."""
    changes = {"learning_rate": 3e-4}
    runs = [run(f"r/{task}", task=task, name="paper", changes=changes) for task in ("A2W", "A2D")]
    (group,) = group_runs(runs)
    (setting,) = split_by_setting(group)
    assert len(setting.variants) == 1
    assert setting.tasks == ("A2W", "A2D")


def test_a_field_that_is_set_to_what_the_recipe_has_does_not_split_a_grid() -> None:
    runs = [run("r/1"), run("r/2", task="D2W", changes={"batch_size": 36})]
    assert len(split_by_setting(group_runs(runs)[0])) == 1


def test_learning_rates_of_tasks_do_not_split_a_grid() -> None:
    runs = [run(f"r/{task}", task=task, name="paper") for task in ("A2W", "A2D")]
    (setting,) = split_by_setting(group_runs(runs)[0])
    assert [config.recipe.learning_rate for config in setting.configs] == [1e-3, 3e-4]


def test_variants_are_shown_with_the_values_in_which_they_differ() -> None:
    runs = [
        run("r/1"),
        run("r/2", overrides={"r": 1.0}),
        run("r/3", "bnm"),
        run("r/4", "bnm", changes={"batch_size": 18}),
        run("r/5", "cdan+nsm"),
        run("r/6", "source_only"),
    ]
    (group,) = group_runs(runs)
    assert [variant.title for variant in group.variants] == [
        "Source only", "BNM (batch_size=18)", "BNM (batch_size=36)", "NSM (r=0.5)", "NSM (r=1)",
        "CDAN+NSM",
    ]  # fmt: skip


def test_settings_are_split_and_the_largest_comes_first() -> None:
    runs = [run("r/1", changes={"iterations": 5}), run("r/2"), run("r/3", "bnm")]
    large, small = split_by_setting(group_runs(runs)[0])
    assert [variant.title for variant in large.variants] == ["BNM", "NSM"]
    assert small.config.recipe.iterations == 5
    assert small.variants[0].title == "NSM"


def test_a_run_that_was_made_twice_counts_once_and_finished_before_unfinished() -> None:
    runs = [run("r/1", finished=False), run("r/2"), run("r/3")]
    (entry,) = group_runs(runs)[0].entries
    assert entry.run is not None
    assert entry.run.path == Path("r/2")


def test_users_own_tasks_with_one_name_and_different_data_are_two_columns() -> None:
    runs = [
        run("r/1", task="photos2clipart", benchmark=None, digest="d1"),
        run("r/2", task="photos2clipart", benchmark=None, digest="d2", seed=1),
        run("r/3", "bnm", task="photos2clipart", benchmark=None, digest="d1"),
    ]
    (group,) = group_runs(runs)
    assert group.title == "own data"
    assert group.tasks == ("photos2clipart", "photos2clipart (2)")
    assert [len(group.of([variant])) for variant in group.variants] == [1, 2]


def test_tasks_and_groups_are_in_the_order_of_benchmarks() -> None:
    runs = [
        run("r/1", task="M2U", benchmark="digits"),
        run("r/2", task="D2W"),
        run("r/3", task="A2W"),
        run("r/4", task="x2y", benchmark=None),
    ]
    groups = group_runs(runs)
    assert [group.title for group in groups] == ["Office-31", "Digits", "own data"]
    assert groups[0].tasks == ("A2W", "D2W")


def test_a_method_that_is_not_registered_here_is_shown_by_its_name() -> None:
    known = run("r/1")
    foreign = dataclasses.replace(known.config, method="theirs", overrides={"x": 1})
    (group,) = group_runs([known, Run(Path("r/2"), foreign, known.result)])
    assert [variant.title for variant in group.variants] == ["NSM", "theirs"]


def test_runs_from_two_runs_of_one_name_are_two() -> None:
    """Before: one of them was taken for a run that was made twice, and left out."""
    made = [
        dataclasses.replace(
            one,
            config=dataclasses.replace(one.config, from_run=f"/{one.path}/run", weights_sha256=w),
        )
        for one, w in ((run("a"), "1" * 64), (run("b"), "2" * 64))
    ]
    assert len(group_runs(made)[0].entries) == 2
