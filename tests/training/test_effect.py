"""A flag that would change nothing is refused or said, whichever way it comes in."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equida import EquidaClassifier
from equida.data import array_domain, load_domain
from equida.data.feature_cache import ExtractionOptions
from equida.errors import InputError
from equida.experiments.run import BenchRequest, make_grid, run_bench
from equida.training.plan import make_plan
from equida.training.request import AdaptRequest, Remarks

ROWS, LABELS = np.arange(400.0).reshape(80, 5), np.arange(80) % 2


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "w.pth").touch()
    return {
        "--weights": {"weights": str(tmp_path / "w.pth")},
        "--features": {"features": True},
        "--backbone": {"backbone": "resnet50"},
        "--ten-crop": {"recipe_params": {"ten_crop": True}},
        "--freeze": {"recipe_params": {"freeze": "all"}},
        "--workers": {"recipe_params": {"workers": 2}},
        "--channels-last": {"recipe_params": {"channels_last": True}},
        "--no-cache": {"cache": False},
    }


def _in_memory(folder: Path, say: Callable[[str], None], given: Mapping[str, Any]) -> None:
    shop, desk = (
        array_domain(ROWS + n, LABELS, name=name) for n, name in enumerate(("shop", "desk"))
    )
    make_plan(AdaptRequest(shop, desk, out=str(folder / "run"), **given), Remarks(say))


def _feature_file(folder: Path, say: Callable[[str], None], given: Mapping[str, Any]) -> None:
    file = folder / "f.npz"
    np.savez(file, a_x=ROWS, a_y=LABELS, b_x=ROWS + 1, b_y=LABELS)
    request = AdaptRequest(f"{file}:a", f"{file}:b", out=str(folder / "run"), **given)
    make_plan(request, Remarks(say))


def _bench(folder: Path, say: Callable[[str], None], given: Mapping[str, Any]) -> None:
    arrays: dict[str, Any] = {"classes": np.array(load_classes())}
    for name in ("amazon", "dslr", "webcam"):
        arrays[f"{name}_x"] = np.full((62, 4), ord(name[0]), "f4")
        arrays[f"{name}_y"] = np.arange(62) % 31
    np.savez(folder / "f.npz", **arrays)
    request = BenchRequest("office31", folder / "runs", data=str(folder / "f.npz"), **given)
    make_grid(request, Remarks(say))


def load_classes() -> tuple[str, ...]:
    from equida.data import benchmark

    return benchmark("office31").classes


REFUSED = ["--weights", "--features", "--backbone", "--ten-crop", "--freeze"]
SAID = ["--workers", "--channels-last", "--no-cache"]


@pytest.mark.parametrize("way_in", [_in_memory, _feature_file, _bench])
@pytest.mark.parametrize("flag", [*REFUSED, *SAID])
def test_settings_of_images_on_rows_of_features(
    tmp_path: Path, settings: dict[str, Any], flag: str, way_in: Callable[..., None]
) -> None:
    said: list[str] = []
    expected = f"{flag} has no effect: the data of .* are rows, not image files"
    if flag in REFUSED:
        with pytest.raises(InputError, match=expected + "; leave it out"):
            way_in(tmp_path, said.append, settings[flag])
    else:
        way_in(tmp_path, said.append, settings[flag])
        assert len(said) == 1
        assert said[0].startswith(f"{flag} has no effect")
    way_in(tmp_path, said.append, {"recipe_params": {"ten_crop": False, "workers": 0}})
    assert len(said) == (flag in SAID)


def test_trust_in_no_run(tmp_path: Path) -> None:
    said: list[str] = []
    _in_memory(tmp_path, said.append, {"trust": True})
    assert said == ["--trust has no effect without --from RUN, whose record would be trusted"]


def test_rows_that_are_not_finite_are_what_skipping_leaves_out(tmp_path: Path) -> None:
    """So that --skip-unreadable does have an effect on rows."""
    rows, said = ROWS.copy(), list[str]()
    rows[3, 2], rows[5, 1] = np.nan, 1e300
    shop, desk = array_domain(ROWS, LABELS, name="shop"), array_domain(rows, LABELS, name="desk")
    request = AdaptRequest(shop, desk, out=str(tmp_path / "run"), skip_unreadable=True)
    assert len(make_plan(request, Remarks(said.append)).task.target) == 78
    assert said == [
        "left out: row 3: holds values that are not finite",
        "left out: row 5: holds values that are too large for float32",
    ]


def test_a_sweep_over_what_has_no_effect(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--ten-crop has no effect"):
        _bench(tmp_path, print, {"sweep": ["ten_crop=no,yes"]})


def test_the_estimator() -> None:
    model = EquidaClassifier(iterations=1, recipe_params={"ten_crop": True})
    with pytest.raises(InputError, match="--ten-crop has no effect"):
        model.fit(ROWS, LABELS, X_target=ROWS)
    with pytest.warns(UserWarning, match="--workers has no effect"):
        EquidaClassifier(iterations=1, recipe_params={"workers": 1}).fit(
            ROWS, LABELS, X_target=ROWS
        )


def test_small_images_as_arrays(tmp_path: Path) -> None:
    """LeNet is trained on them, so that only what concerns image files has no effect."""
    source, target = (load_domain("digits", name) for name in ("U", "M"))
    refused: dict[str, Any] = {
        "--features": {"features": True},
        "--ten-crop": {"recipe_params": {"ten_crop": True}},
    }
    for flag, given in refused.items():
        with pytest.raises(InputError, match=f"{flag} has no effect"):
            make_plan(AdaptRequest(source, target, out=str(tmp_path), **given))
    make_plan(
        AdaptRequest(source, target, out=str(tmp_path), recipe_params={"channels_last": True})
    )
    with pytest.raises(InputError, match="--data has no effect: digits comes inside a package"):
        load_domain("digits", "U", tmp_path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seeds": "20240101"}, "For this one seed, add a comma: --seeds 20240101,"),
        ({"seeds": range(10**12)}, "lists more than 1000 seeds"),
        ({"seeds": 10**30}, "expected how many"),
        ({"sweep": {"r": range(10**12)}}, "has no values or more than 1000"),
        ({"sweep": {"r": 0.5}}, "expected a list of values"),
        ({"sweep": ["r=0:1:0.002", "trade_off=0:1:0.01"]}, "variants of methods; expected at most"),
        ({"sweep": ["r=0:1:0.002"], "seeds": 1000}, "runs; expected at most 100000"),
        ({"recipe_params": {"iterations": 10**30}, "recipe": "features"}, "iterations is 1000000"),
        ({"recipe_params": {"batch_size": 10**9}, "recipe": "features"}, "batch_size is 1000000"),
    ],
)
def test_numbers_that_nobody_can_wait_for(tmp_path: Path, given: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        make_grid(BenchRequest("office31", tmp_path, data=str(tmp_path), **given), Remarks(print))
    assert said in str(error.value)


@pytest.mark.parametrize("count", [10**9, 10**30, -1])
def test_more_threads_and_processes_than_a_machine_can_have(tmp_path: Path, count: int) -> None:
    rows = array_domain(ROWS, LABELS, name="shop")
    with pytest.raises(
        InputError,
        match=f"--threads is {count}; it must be 0 ",
    ):
        make_plan(AdaptRequest(rows, rows, out=str(tmp_path), threads=count))
    with pytest.raises(InputError, match=f"--jobs is {count}; it must be a whole number"):
        run_bench(BenchRequest("digits", tmp_path / "runs", jobs=count), Remarks(print))
    asked: list[dict[str, Any]] = [{"workers": count}, {"batch_size": count}, {"views": count}]
    for options in asked:
        with pytest.raises(InputError, match=f"is {count}; it must be"):
            ExtractionOptions(**options)
    assert not (tmp_path / "runs").exists()
