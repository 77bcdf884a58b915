"""Which runs a grid has, and what their folders are called."""

import dataclasses
from pathlib import Path

import pytest

from equida.data.feature_file import FeatureOrigin
from equida.errors import InputError
from equida.experiments.grid import Grid, chosen_methods, chosen_seeds, chosen_tasks, plan
from equida.methods import METHODS
from equida.runs.variant import Variant

GRID = Grid("office31", (Variant("nsm"),), ("A2W", "A2D"), (0, 1), "paper", {}, "/data")


def test_one_seed_is_finished_before_the_next() -> None:
    runs = plan(GRID, Path("runs"))
    assert [(run.seed, run.task) for run in runs] == [
        (0, "A2W"),
        (0, "A2D"),
        (1, "A2W"),
        (1, "A2D"),
    ]


def test_tasks_have_the_papers_learning_rates_and_methods_its_presets() -> None:
    first, second = plan(GRID, Path("runs"))[:2]
    assert (first.config.recipe.learning_rate, second.config.recipe.learning_rate) == (1e-3, 3e-4)
    assert first.config.benchmark == "office31"


def test_names_are_readable_and_differ_wherever_a_result_could() -> None:
    changes = [
        GRID,
        dataclasses.replace(GRID, recipe_changes={"iterations": 7}),
        dataclasses.replace(GRID, variants=(Variant("nsm", {"r": 1.0}),)),
        dataclasses.replace(GRID, data="/elsewhere"),
        dataclasses.replace(GRID, feature_origin=FeatureOrigin("b", "0", "centre-crop")),
        dataclasses.replace(GRID, backbone="resnet50"),
    ]
    names = [run.folder.name for grid in changes for run in plan(grid, Path("runs"))]
    assert len(set(names)) == len(names) == 24
    assert names[0].startswith("office31-A2W-nsm-seed0-")
    assert names[8].startswith("office31-A2W-nsm-r=1-seed0-")


def test_a_run_has_one_name_however_it_is_asked_for() -> None:
    shown = dataclasses.replace(GRID, variants=(Variant("nsm", shown={"r": 0.5}),))
    assert [r.folder for r in plan(shown, Path("x"))] == [r.folder for r in plan(GRID, Path("x"))]


def test_data_count_by_content_not_by_place() -> None:
    names = []
    for place, digest in (("/here", "1"), ("/there", "1"), ("/here", "2")):
        grid = dataclasses.replace(GRID, data=place, data_sha256=digest)
        names.append([run.folder.name for run in plan(grid, Path("runs"))])
    assert names[0] == names[1]
    assert not set(names[0]) & set(names[2])


def test_weights_count_by_content_not_by_place() -> None:
    names = []
    for place, digest in (("/here.pth", "1"), ("/there.pth", "1"), ("/here.pth", "2")):
        grid = dataclasses.replace(GRID, backbone="lenet", weights=place, weights_sha256=digest)
        names.append([run.folder.name for run in plan(grid, Path("runs"))])
    assert names[0] == names[1]
    assert not set(names[0]) & set(names[2])


def test_a_grid_of_the_first_version_goes_on_in_its_folders() -> None:
    """The names that version 0 gave to these runs (tests/data/runs_of_version_0.tar.xz)."""
    grid = Grid(
        "office31",
        (Variant("source_only"), Variant("nsm"), Variant("nsm", {"r": 1.0})),
        ("A2W", "D2W"),
        (0,),
        "features",
        {"bottleneck": 4, "batch_size": 8, "iterations": 4, "evaluate_every": 2},
        "/somewhere/office.npz",
        data_sha256="40b2e600f20bb637a003414103c8ee205f19aef1e992d2a4ef7e26fe5d704c18",
    )
    assert [run.folder.name for run in plan(grid, Path("runs"))] == [
        "office31-A2W-source_only-seed0-ff22d29214",
        "office31-A2W-nsm-seed0-ff41b367c4",
        "office31-A2W-nsm-r=1-seed0-b670991d9c",
        "office31-D2W-source_only-seed0-19d54980a0",
        "office31-D2W-nsm-seed0-cbca6b97ba",
        "office31-D2W-nsm-r=1-seed0-80d57d63c1",
    ]


def test_names_in_lists() -> None:
    assert chosen_methods("all")[0] == "source_only"
    assert len(chosen_methods("all")) == 11
    assert chosen_methods("every") == tuple(METHODS)
    assert chosen_methods("nsm,nsm, cdan + nsm") == ("nsm", "cdan+nsm")
    assert chosen_tasks("W2A, amazon2webcam", "office31") == ("A2W", "W2A")
    assert chosen_tasks("", "office_home")[0] == "Ar2Cl"
    assert chosen_seeds("2") == (0, 1)
    assert chosen_seeds("7,") == (7,)


def test_a_seed_that_looks_like_a_count_is_explained() -> None:
    with pytest.raises(InputError, match="For this one seed, add a comma: --seeds 2024"):
        chosen_seeds("20240101")
    assert chosen_seeds("20240101,") == (20240101,)


@pytest.mark.parametrize("text", ["0", "x", "-1", "1,x", "", "1.5"])
def test_bad_seeds_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--seeds"):
        chosen_seeds(text)


def test_misspelt_methods_and_tasks_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'nsm'"):
        chosen_methods("nms")
    with pytest.raises(InputError, match="no task 'A2A'"):
        chosen_tasks("A2A", "office31")


def test_a_list_of_no_tasks_is_not_all_of_them() -> None:
    assert chosen_tasks("", "digits") == chosen_tasks([], "digits") == ("M2U", "U2M")
    for given in (",", " ", [""], [" "]):
        with pytest.raises(InputError, match="which names none; expected some of"):
            chosen_tasks(given, "digits")
