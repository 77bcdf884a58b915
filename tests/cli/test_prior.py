"""`--prior` from the command line and from Python: rows, images, no source at all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import equida
from equida.cli import main
from equida.errors import InputError
from equida.evaluation.shares import shares_from_predictions
from equida.experiments.run import BenchRequest, requested_sweeps, sweeps
from equida.experiments.sweep import Sweep, make_variant
from equida.training.aims import aim_lines
from equida.training.config import Aim

SMALL = ["--iterations", "4", "--batch-size", "8", "--bottleneck", "6", "--quiet"]


@pytest.fixture
def skewed(tmp_path: Path) -> Path:
    """Two domains of four classes that lie apart; those of the second are unequal."""
    random, file = np.random.default_rng(0), tmp_path / "skewed.npz"
    centres, a = 4.0 * random.normal(size=(4, 8)), np.arange(120) % 4
    b = np.repeat(range(4), (60, 30, 15, 6))
    rows = [centres[labels] + random.normal(size=(len(labels), 8)) for labels in (a, b)]
    np.savez(file, a_x=rows[0], a_y=a, b_x=rows[1])
    return file


def adapt(toy: Path, out: Path, *flags: str) -> dict[str, Any]:
    words = ["adapt", "-s", f"{toy}:a", "-t", f"{toy}:b", "--out", str(out), *SMALL, *flags]
    assert main(words) == 0
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    return result


def test_a_file_of_shares_is_read_once_and_recorded(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shares.csv"
    file.write_text("class,share\nz,0.4\ny,0.3\nx,0.2\nw,0.1\n")
    flags = ("--prior", str(file), "--prior-strength", "1")
    result = adapt(toy, tmp_path / "run", *flags)
    assert result["aims"]["nsm"]["aim"] == [0.1, 0.2, 0.3, 0.4]
    shown = " ".join(capsys.readouterr().out.split())
    assert "z 40.0 % to w 10.0 %, uniform would be 25.0 %" in shown
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert json.loads(config["overrides"]["prior"]) == {"z": 0.4, "y": 0.3, "x": 0.2, "w": 0.1}
    file.unlink()
    assert main(["rerun", str(tmp_path / "run"), "--out", str(tmp_path / "again")]) == 0
    assert "equal bit for bit" in capsys.readouterr().out


def test_a_finished_run_s_own_predictions_give_the_estimate(toy: Path, tmp_path: Path) -> None:
    adapt(toy, tmp_path / "first", "--iterations", "60")
    words = ["adapt", "--from", str(tmp_path / "first"), "-t", f"{toy}:b", *SMALL]
    assert main([*words, "--prior", "estimate", "--out", str(tmp_path / "second")]) == 0
    recorded = json.loads((tmp_path / "second" / "result.json").read_text())["aims"]["nsm"]
    weights = load_file(tmp_path / "first" / "model.safetensors")
    w = {name.removeprefix("network."): value.astype(np.float64) for name, value in weights.items()}
    rows = np.load(toy)["b_x"].astype(np.float64)
    hidden = rows @ w["bottleneck.0.weight"].T + w["bottleneck.0.bias"]
    deviation = np.sqrt(w["bottleneck.1.running_var"] + 1e-5)
    hidden = (hidden - w["bottleneck.1.running_mean"]) / deviation
    hidden = np.maximum(hidden * w["bottleneck.1.weight"] + w["bottleneck.1.bias"], 0.0)
    calibration = json.loads((tmp_path / "first" / "result.json").read_text())["calibration"]
    temperature = calibration["temperature"] if calibration else 1.0
    logits = (hidden @ w["classifier.weight"].T + w["classifier.bias"]) / temperature
    powers = np.exp(logits - logits.max(1, keepdims=True))
    expected = shares_from_predictions(hidden, powers / powers.sum(1, keepdims=True))
    assert recorded["aim"] == pytest.approx(expected.shares, abs=1e-4)
    with pytest.raises(SystemExit):
        raise SystemExit(main([*words, "--prior", "source", "--out", str(tmp_path / "third")]))
    assert not (tmp_path / "third" / "result.json").exists()


def test_images_that_are_fine_tuned_use_the_starting_backbone(
    pictures: Path, tmp_path: Path
) -> None:
    words = ["adapt", "-s", str(pictures / "photos"), "-t", str(pictures / "drawings"), "--quiet"]
    words += ["--backbone", "tiny_backbone:net", "--iterations", "2", "--batch-size", "4"]
    runs = []
    for name, flags in (("plain", []), ("aiming", ["--prior", "estimate"])):
        assert main([*words, "--workers", "0", *flags, "--out", str(tmp_path / name)]) == 0
        runs.append(json.loads((tmp_path / name / "result.json").read_text()))
    assert "aims" not in runs[0]
    recorded = runs[1]["aims"]["nsm"]
    assert sum(recorded["aim"]) == pytest.approx(1.0, abs=1e-5)
    assert 0.0 <= recorded["agreement"] <= 0.99


def test_a_comparison_of_priors(toy: Path, tmp_path: Path) -> None:
    """Python values and texts, and names of folders that stay short."""
    assert sweeps({"prior": ["uniform", [0.5, 0.5]]}) == [Sweep("prior", ("uniform", "[0.5, 0.5]"))]
    request = BenchRequest("office31", tmp_path, sweep=["r=0.5,1"], prior={"mug": 1.0})
    assert requested_sweeps(request)[1] == Sweep("prior", ('{"mug": 1.0}',))
    with pytest.raises(InputError, match="prior is given by itself and in a sweep"):
        requested_sweeps(BenchRequest("office31", tmp_path, sweep=["prior=source"], prior="source"))
    many = make_variant("nsm", {"prior": str([1 / 65] * 65)}, "office_home")
    assert len(many.title) < 40
    assert make_variant("nsm", {"prior": "oracle"}, None).title == (
        "NSM (prior=oracle (uses target labels))"
    )
    with pytest.raises(InputError, match=r"r is 0"):
        make_variant("nsm", {"prior": "source", "r": 0.0}, None)


def test_python_takes_lists_and_arrays(toy: Path, tmp_path: Path) -> None:
    for number, shares in enumerate(([0.1, 0.2, 0.3, 0.4], np.array([1, 2, 3, 4]))):
        run = equida.adapt(
            f"{toy}:a",
            f"{toy}:b",
            method="cwsm",
            method_params={"prior": shares, "prior_strength": 1.0},
            recipe_params={"iterations": 2, "batch_size": 8, "bottleneck": 6},
            out=tmp_path / f"run{number}",
        )
        assert run.config.aims["cwsm"].aim == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_an_estimate_without_agreement_is_called_uniform() -> None:
    aim = Aim("estimate", 1.0, [0.5, 0.5], [0.5, 0.5], False, agreement=0.0, imbalance=0.0)
    assert aim_lines({"nsm": aim}, ["mug", "pen"]) == [
        "nsm aims at class shares by estimate (trusted by 0 %): uniform ones"
    ]


def test_one_flag_for_all_parts_of_a_composition(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["--method", "clusters+nsm", "--prior", "0.1,0.2,0.3,0.4", "--prior-strength", "1"]
    result = adapt(toy, tmp_path / "both", *both)
    aims = {part: aim["aim"] for part, aim in result["aims"].items()}
    assert aims == {part: [0.1, 0.2, 0.3, 0.4] for part in ("clusters", "nsm")}
    capsys.readouterr()
    assert main(["rerun", str(tmp_path / "both")]) == 0
    assert "equal bit for bit" in capsys.readouterr().out
    one = adapt(toy, tmp_path / "one", "--method", "nsm+mcc", "--prior", "estimate")
    # The flag of the part is the same run.
    same = adapt(toy, tmp_path / "one", "--method", "nsm+mcc", "--nsm-prior", "estimate")
    assert same["aims"]["nsm"]["prior"] == "estimate"
    assert same == one
    mixed = ["--method", "bnm+nsm", "--prior", "estimate", "--nsm-prior", "source"]
    found = adapt(toy, tmp_path / "mixed", *mixed)["aims"]
    assert {part: aim["prior"] for part, aim in found.items()} == {
        "bnm": "estimate",
        "nsm": "source",
    }


def test_auto_takes_the_advice_by_itself(
    skewed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = adapt(skewed, tmp_path / "auto", "--method", "auto")
    assert {aim["prior"] for aim in found["aims"].values()} == {"estimate"}
    assert "may hurt; try" not in _words(capsys)
    adapt(skewed, tmp_path / "equal", "--method", "auto", "--prior", "uniform")
    assert "equal class sizes may hurt; try --prior estimate" in _words(capsys)
    result = adapt(skewed, tmp_path / "aiming", "--method", "auto", "--prior", "estimate")
    assert {aim["prior"] for aim in result["aims"].values()} == {"estimate"}
    assert "may hurt; try" not in _words(capsys)


def test_compare_has_the_flag(toy: Path, tmp_path: Path) -> None:
    words = ["compare", f"{toy}:a", f"{toy}:b", "--out", str(tmp_path / "out"), *SMALL]
    words += ["--methods", "source_only,nsm", "--seeds", "1", "-j", "1", "--prior", "estimate"]
    assert main(words) == 0
    rows = json.loads((tmp_path / "out" / "table.json").read_text())["rows"]
    assert [row["overrides"] for row in rows] == [{}, {"prior": "estimate"}]


def test_a_strength_beside_an_estimate_is_one_line(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["adapt", "-s", f"{toy}:a", "-t", f"{toy}:b", "--out", str(tmp_path / "run"), *SMALL]
    assert main([*words, "--prior", "estimate", "--prior-strength", "0"]) == 2
    assert capsys.readouterr().err == (
        "equida: nsm.prior_strength is 0, but the prior is 'estimate', which is used as it is;"
        " leave prior_strength out\n"
    )
    assert not (tmp_path / "run").exists()


def _words(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())
