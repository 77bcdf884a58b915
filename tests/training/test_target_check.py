"""What a run says of its target without labels: shares, harm, calibrated confidences."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.small_data import BACKBONE, write_pictures

import equida
from equida.cli import main
from equida.data import Domain, array_domain, image_folder, make_task
from equida.evaluation import shares as estimates
from equida.evaluation.predictions import DomainPredictions
from equida.models.backbone import backbone_name
from equida.runs.read import Run
from equida.runs.target import imbalance_notes, share_remarks, share_rows, target_remarks
from equida.training import target_check
from equida.training.aims import StartingNetwork
from equida.training.config import Aim, RunConfig
from equida.training.loop import train
from equida.training.recipe import Recipe
from equida.training.recorder import Recorder

COUNTS = np.array([120, 24, 12, 12, 6, 6])
SMALL = {"iterations": 200, "batch_size": 36, "bottleneck": 16, "evaluate_every": 200}
UNEVEN = [0.4, 0.2, 0.1, 0.1, 0.1, 0.1]
EQUAL = [1 / 6] * 6


def blobs(counts: np.ndarray, shift: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    centres = 2.5 * random.normal(size=(len(counts), 12))
    labels = np.repeat(np.arange(len(counts)), counts)
    noise = np.random.default_rng(seed).normal(size=(len(labels), 12))
    return (centres[labels] + shift + noise).astype("f4"), labels


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """BNM on a target with a long tail, which it does not know to be one."""
    folder = tmp_path_factory.mktemp("uneven")
    return equida.adapt(
        blobs(np.full(6, 30), 0.0, 1), blobs(COUNTS, 0.3, 2)[0], method="bnm",
        method_params={"trade_off": 4.0}, recipe_params=SMALL, out=folder / "run", progress=False,
    )  # fmt: skip


def test_shares_are_estimated_without_labels_and_the_imbalance_is_said(run: Any) -> None:
    shares = run.class_shares
    true = COUNTS / COUNTS.sum()
    assert np.abs(np.array(shares["estimated"]) - true).sum() < 0.1
    assert shares["aim"] == pytest.approx(EQUAL)
    assert sum(shares["predicted"]) == pytest.approx(1, abs=1e-3)
    found = run.result["shares"]
    assert found["imbalance"] == pytest.approx(0.5 * np.abs(true - 1 / 6).sum(), abs=0.05)
    assert "try --prior estimate" in run.remarks[0]
    assert f"W = .{100 * found['imbalance']:.0f}" in run.remarks[0]


def test_a_prior_is_recorded_as_what_was_asked_for(run: Any, tmp_path: Path) -> None:
    asked = equida.adapt(
        blobs(np.full(6, 30), 0.0, 1), blobs(COUNTS, 0.3, 2)[0], method="bnm",
        method_params={"prior": "estimate"}, recipe_params=SMALL, out=tmp_path, progress=False,
    )  # fmt: skip
    aim = np.array(asked.class_shares["aim"])
    assert aim.argmax() == 0
    assert aim[0] > 0.4
    assert asked.remarks[0].endswith(")")


def test_confidences_are_calibrated_on_samples_that_were_held_out(run: Any) -> None:
    found = run.result["calibration"]
    assert found["trained_again"]
    assert found["held_out"] == 36  # a fifth of 180
    raw = run.predictions.probs.numpy()
    scaled = raw ** (1 / found["temperature"])
    scaled /= scaled.sum(1, keepdims=True)
    said = run.predict(blobs(COUNTS, 0.3, 2)[0])
    np.testing.assert_allclose(said.probs, scaled, atol=2e-4)
    assert found["expected_accuracy"] == pytest.approx(scaled.max(1).mean(), abs=1e-3)
    assert "optimistic" in run.remarks[-1]


def test_a_real_hold_out_needs_no_second_run(tmp_path: Path) -> None:
    held = equida.adapt(
        blobs(np.full(6, 30), 0.0, 1), blobs(COUNTS, 0.3, 2)[0],
        recipe_params=SMALL | {"holdout": 0.3, "iterations": 4}, out=tmp_path, progress=False,
    )  # fmt: skip
    assert held.result is not None
    found = held.result["calibration"]
    assert not found["trained_again"]
    assert found["held_out"] == 54


@pytest.mark.parametrize(
    ("samples", "changes", "said"),
    [
        (30, {}, "there are 6 held-out source samples, and it takes at least 20"),
        (30, {"holdout": 0.01}, "there are 6 held-out source samples, and it takes at least 20"),
        (180, {"batch_size": 150}, "144 samples would be left, fewer than a batch of 150"),
    ],
)
def test_a_run_without_calibrated_confidences_says_so(
    samples: int, changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """Before: nothing was said where the source was too small."""
    run = equida.adapt(
        blobs(np.full(6, samples // 6), 0.0, 1), blobs(COUNTS, 0.3, 2)[0], out=tmp_path,
        recipe_params={"iterations": 2, "batch_size": 12, **changes}, progress=False,
    )  # fmt: skip
    assert run.result is not None
    assert run.result["calibration"] is None
    (remark,) = (line for line in run.remarks if "calibrated" in line)
    assert remark.startswith("confidences are not calibrated: ")
    assert remark.endswith(said)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("no source", ": there are no source samples to hold out"),
        ("none held out", ": no source samples were held out; --holdout 0.2 holds a fifth of them"),
        ("what a later version says", ""),
    ],
)
def test_why_confidences_are_not_calibrated(reason: str, said: str) -> None:
    record = {"reason": reason, "seen": 0, "needed": 0}
    (remark,) = target_remarks({"calibration": None, "uncalibrated": record})
    assert remark.startswith(f"confidences are not calibrated{said}")


def test_the_second_run_is_that_of_a_hold_out_without_its_evaluations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    evaluate = Recorder._evaluate

    def counted(self: Recorder, done: int) -> None:
        steps.append(done)
        evaluate(self, done)

    monkeypatch.setattr(Recorder, "_evaluate", counted)
    found = []
    for share in (0.0, 0.2):
        done = equida.adapt(
            blobs(np.full(6, 30), 0.0, 1), blobs(COUNTS, 0.3, 2)[0],
            recipe_params=SMALL | {"holdout": share, "iterations": 4, "evaluate_every": 2},
            out=tmp_path / str(share), progress=False,
        )  # fmt: skip
        assert done.result is not None
        found.append(done.result["calibration"]["temperature"])
    assert steps == [2, 4, 4, 2, 4]
    assert found[0] == found[1]


def test_the_page_says_it_too(run: Any, tmp_path: Path) -> None:
    run.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert run.remarks[0] in page
    assert '"estimated"' in page


def test_a_task_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def predict(*arguments: Any) -> Any:
        calls.append(1)
        return estimates.source_predictions(*arguments)

    monkeypatch.setattr(target_check, "source_predictions", predict)
    x, y = blobs(np.full(6, 30), 0.0, 1)
    task = make_task(array_domain(x, y, name="a"), array_domain(x, name="b"))
    first, second = target_check.source_view(task), target_check.source_view(task)
    assert first is second
    assert len(calls) == 1
    other = make_task(array_domain(x, y, name="a"), array_domain(x, name="b"))
    target_check.source_view(other)
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        (
            {"predicted": UNEVEN, "aim": EQUAL, "agreement": 0.9, "imbalance": 0.21},
            "(W = .21): equal",
        ),
        (  # as aims are recorded, which is not exactly equal
            {"predicted": UNEVEN, "aim": [0.166667] * 6, "agreement": 0.9, "imbalance": 0.21},
            "(W = .21): equal",
        ),
        ({"predicted": UNEVEN, "aim": UNEVEN, "agreement": 0.9, "imbalance": 0.21}, "(W = .21)"),
        ({"predicted": UNEVEN, "aim": EQUAL, "agreement": 0.0, "imbalance": 0.0}, "cannot tell"),
        ({"predicted": EQUAL, "aim": EQUAL, "agreement": 0.0, "imbalance": 0.0}, None),
        ({"predicted": UNEVEN, "aim": EQUAL, "agreement": 0.9, "imbalance": 0.05}, None),
        ({"predicted": UNEVEN, "aim": EQUAL}, None),
    ],
)
def test_remarks_on_shares(shares: dict[str, Any], said: str | None) -> None:
    remarks = target_remarks({"shares": shares})
    assert len(remarks) == (0 if said is None else 1)
    assert said is None or said in remarks[0]


def test_nothing_was_adapted_by_source_only() -> None:
    harm: dict[str, Any] = {"levelled": True, "collapsed": False}
    harm |= {"source_only": {"equity": 0.0}, "adapted": {"equity": 0.06}}
    assert "(source only)" in target_remarks({"harm": harm, "method": "nsm"})[0]
    assert target_remarks({"harm": harm, "method": "source_only"}) == []


def test_a_small_table_of_shares_sums_up_what_it_leaves_out() -> None:
    shares = {"predicted": [0.4, 0.3, 0.1, 0.1, 0.05, 0.05], "aim": EQUAL}
    shares["estimated"] = [0.4, 0.1, 0.1, 0.1, 0.12, 0.18]
    names = list("abcdef")
    head, *rows = share_rows(shares, names)
    assert head == ["class shares", "predicted", "estimated", "aimed at"]
    assert [row[0] for row in rows] == ["b", "f", "e", "a", "2 others"]
    assert rows[0] == ["b", "30.0 %", "10.0 %", "16.7 %"]
    assert rows[-1][1:] == ["20.0 %", "20.0 %", "33.3 %"]
    del shares["estimated"]
    head, *rows = share_rows(shares | {"aim": None}, names)  # farthest from a sixth
    assert head == ["class shares", "predicted"]
    assert [row[0] for row in rows][:2] == ["a", "b"]
    assert share_rows({}, names) == []


def test_a_table_of_runs_names_the_tasks_that_look_imbalanced() -> None:
    uneven = {"shares": {"aim": EQUAL, "imbalance": 0.21}}
    results: list[tuple[str, str, dict[str, Any]]] = [
        ("NSM", "A2W", uneven),
        ("BNM", "A2W", {"shares": {"aim": EQUAL, "imbalance": 0.25}}),
        ("NSM", "A2D", {"shares": {"aim": EQUAL, "imbalance": 0.05}}),
        ("NSM (prior=estimate)", "A2W", {"shares": {"aim": UNEVEN, "imbalance": 0.21}}),
        ("Source only", "A2W", {"shares": {"aim": None, "imbalance": 0.21}}),
        ("MCC", "A2W", {}),
    ]
    (note,) = imbalance_notes(results)
    assert note.startswith("The target looks imbalanced: A2W (W = .25). Equal class sizes may hurt")
    assert "(NSM, BNM)" in note
    assert imbalance_notes(results[2:]) == []


def test_a_comparison_says_it_below_its_table(tmp_path: Path) -> None:
    table = equida.compare(
        blobs(np.full(6, 30), 0.0, 1), blobs(COUNTS, 0.3, 2)[0], methods=["nsm"], out=tmp_path,
        seeds=1, jobs=1, recipe_params=SMALL | {"iterations": 2}, progress=False,
    )  # fmt: skip
    (note,) = [note for note in table.notes if "looks imbalanced" in note]
    assert "(NSM)" in note
    assert note in (tmp_path / "table.md").read_text()


@pytest.fixture(scope="module")
def soft(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A source-only run that is right, and far too soft without its temperature."""
    return equida.adapt(
        blobs(np.full(6, 30), 0.0, 1), blobs(COUNTS, 0.3, 2)[0], method="source_only",
        recipe_params=SMALL | {"iterations": 20}, out=tmp_path_factory.mktemp("soft") / "run",
        progress=False,
    )  # fmt: skip


def test_without_source_data_the_start_is_compared_with(soft: Run, tmp_path: Path) -> None:
    """Before: neither an estimate nor a word, however much was lost."""
    done = equida.adapt(
        None, blobs(COUNTS, 0.3, 2)[0], from_run=soft, method="bnm",
        method_params={"trade_off": 4.0}, recipe_params=SMALL, out=tmp_path, progress=False,
    )  # fmt: skip
    assert done.result is not None
    assert "try --prior estimate" in done.remarks[0]
    assert "(the run it started from)" in done.remarks[1]
    assert done.remarks[-1].endswith("not calibrated: there are no source samples to hold out")
    start = soft.predictions.probs.argmax(1)
    moved = (start != done.predictions.probs.argmax(1)).float().mean()
    assert done.result["harm"]["moved"] == pytest.approx(float(moved), abs=1e-6)
    true = COUNTS / COUNTS.sum()
    assert np.abs(np.array(done.class_shares["estimated"]) - true).sum() < 0.4  # equal ones: 1.0


def test_without_source_data_the_labels_of_a_target_teach_nothing(
    soft: Run, tmp_path: Path
) -> None:
    """Before: where a target was judged by other samples, its labels were taken for a source's."""
    x, y = blobs(COUNTS, 0.3, 2)
    names = [str(number) for number in range(6)]
    domain = array_domain(x, y, classes=names, name="target")
    test = array_domain(x[::2], y[::2], classes=names, name="target (test)")
    task = make_task(domain, domain, test=test)
    config = RunConfig("nsm", Recipe(**SMALL), from_run=str(soft.path))  # type: ignore[arg-type]
    result = train(config, task, look_at_target=True).result
    assert result["harm"]["compared_with"] == "the run it started from"
    said = soft.predictions.probs[::2].argmax(1)
    view = train(config, task, look_at_target=True).built.start_view
    assert view is not None
    assert (view.log_probs.argmax(1) == said).all()


def test_without_source_data_an_estimate_is_calibrated(soft: Run, tmp_path: Path) -> None:
    """Before: the softmax as it was, which is nearly uniform here, and an agreement of 0."""
    assert soft.result is not None
    temperature = soft.result["calibration"]["temperature"]
    assert temperature < 0.5
    done = equida.adapt(
        None, blobs(COUNTS, 0.3, 2)[0], from_run=soft, method_params={"prior": "estimate"},
        recipe_params=SMALL | {"iterations": 2}, out=tmp_path, progress=False,
    )  # fmt: skip
    probs = soft.predictions.probs.double().numpy() ** (1 / temperature)
    expected = (probs / probs.sum(1, keepdims=True)).mean(0)
    aim = done.config.aims["nsm"]
    assert aim.agreement is not None
    assert aim.agreement > 0.9
    assert np.abs(np.array(aim.aim) - expected).sum() < 0.1
    assert done.class_shares["estimated"] == pytest.approx(aim.mean_shares, abs=1e-4)


def test_estimated_shares_are_the_mean_of_both_estimates_on_images_too() -> None:
    """Before: where nothing but the aim was known, what is aimed at stood there."""
    aim = Aim("estimate", 1.0, UNEVEN, UNEVEN, False, 0.5, 0.12, [0.6, 0.2, 0.05, 0.05, 0.05, 0.05])
    log_probs = torch.eye(6).add(0.01).log_softmax(1)
    found = target_check.describe_target(DomainPredictions(log_probs), None, UNEVEN, aim)["shares"]
    assert found["estimated"] == aim.mean_shares
    assert found["agreement"] == 0.5
    older = dataclasses.replace(aim, mean_shares=None)
    found = target_check.describe_target(DomainPredictions(log_probs), None, UNEVEN, older)
    assert "estimated" not in found["shares"]


def test_results_of_earlier_versions_say_nothing() -> None:
    assert target_remarks({}) == []
    assert target_remarks({"calibration": None}) == []


def test_bench_looks_at_targets_but_does_not_train_again(toy_office: Path, tmp_path: Path) -> None:
    words = ["bench", "office31", "--data", str(toy_office), "--methods", "source_only", "--tasks"]
    words += ["A2W", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path), "--quiet"]
    assert main([*words, "--iterations", "4", "--evaluate-every", "4"]) == 0
    (found,) = tmp_path.glob("*/result.json")
    done = equida.load_run(found.parent)
    assert done.result is not None
    assert done.class_shares["aim"] is None
    assert len(done.class_shares["estimated"] or ()) == 31
    assert 0 <= done.result["harm"]["moved"] <= 1
    assert "calibration" not in done.result


@pytest.mark.parametrize("samples", [30, 90])
def test_a_target_that_is_judged_by_other_samples(samples: int) -> None:
    """Before: what the source says of the target's samples was compared with what the network says
    of others, or ended in a traceback."""
    x, y = blobs(np.full(6, 10), 0.0, 1)
    target, _ = blobs(np.full(6, 10), 0.3, 2)
    test, known = (each[:samples] for each in blobs(np.full(6, 15), 0.3, 3))
    names = [str(number) for number in range(6)]
    task = make_task(
        array_domain(x, y, classes=names, name="source"),
        array_domain(target, name="target"),
        test=array_domain(test, known, classes=names, name="target (test)"),
    )
    fields: dict[str, Any] = {**SMALL, "keep": "cluster_agreement"}
    result = train(RunConfig("nsm", Recipe(**fields)), task, look_at_target=True).result
    view = target_check.source_view(dataclasses.replace(task, target=task.judged, test=None))
    assert view is not None
    assert len(view.samples) == samples
    found = result["shares"]["estimated"]
    np.testing.assert_allclose(found, view.estimate.mean_shares, atol=1e-4)
    assert result["harm"]["moved"] < 0.5


def test_shares_are_estimated_from_the_features_that_fine_tuning_starts_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: a run that fine-tunes images said nothing of its target unless it was asked to."""
    write_pictures(tmp_path, ("photos", "clipart"), ("mug", "pen", "cup"), count=20)
    for name, kept in (("pen", 6), ("cup", 4)):
        for file in sorted((tmp_path / "clipart" / name).iterdir())[kept:]:
            file.unlink()
    (tmp_path / "shares_net.py").write_text(BACKBONE)
    monkeypatch.syspath_prepend(str(tmp_path))
    recipe = {"iterations": 2, "batch_size": 4, "evaluate_every": 2, "workers": 0}
    done = equida.adapt(
        tmp_path / "photos", tmp_path / "clipart", backbone="shares_net:net", recipe_params=recipe,
        ignore_target_labels=True, out=tmp_path / "run", progress=True,
    )  # fmt: skip
    found = dict(zip(done.classes, done.class_shares["estimated"] or (), strict=True))
    assert found == pytest.approx({"mug": 20 / 30, "pen": 6 / 30, "cup": 4 / 30}, abs=0.05)
    assert any("looks imbalanced" in remark for remark in done.remarks)
    assert "estimating the target's class shares" in capsys.readouterr().err
    assert done.result is not None
    assert "harm" not in done.result


def test_runs_on_the_same_images_share_the_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pictures(tmp_path, ("photos", "clipart"), ("mug", "pen"))
    (tmp_path / "shared_net.py").write_text(BACKBONE)
    monkeypatch.syspath_prepend(str(tmp_path))
    recipe: dict[str, Any] = {"iterations": 2, "batch_size": 4, "evaluate_every": 2}
    task = make_task(image_folder(tmp_path / "photos"), image_folder(tmp_path / "clipart"))
    looked = []
    plain = StartingNetwork.features

    def features(self: StartingNetwork, domain: Domain) -> Any:
        looked.append(domain.name)
        return plain(self, domain)

    monkeypatch.setattr(StartingNetwork, "features", features)
    name = backbone_name("shared_net:net")
    for method in ("nsm", "bnm"):
        config = RunConfig(method, Recipe(**recipe), backbone=name)
        found = train(config, task, look_at_target=True).result["shares"]
        assert len(found["estimated"]) == 2
    assert looked == ["photos", "clipart"]


def test_features_of_a_random_network_are_not_asked() -> None:
    images = np.random.default_rng(0).random((24, 1, 28, 28), dtype=np.float32)
    labels = np.arange(24) % 2
    recipe: dict[str, Any] = {"iterations": 2, "batch_size": 4, "evaluate_every": 2}
    task = make_task(array_domain(images, labels, name="a"), array_domain(images, name="b"))
    config = RunConfig("nsm", Recipe(**recipe), backbone="lenet")
    assert "estimated" not in train(config, task, look_at_target=True).result["shares"]


def test_a_trusted_estimate_is_not_said_to_be_unknown() -> None:
    """Where cluster labels were trusted, the first two estimates may disagree."""
    shares = {"predicted": UNEVEN, "agreement": 0.0, "imbalance": 0.0}
    assert target_remarks({"shares": shares | {"aim": EQUAL}})
    assert target_remarks({"shares": shares | {"aim": UNEVEN}}) == []


def test_sizes_that_a_method_has_made_equal_do_not_hide_a_skewed_target() -> None:
    """Before: nothing was said of a target of one class, which NSM had spread over all."""
    shares = {"predicted": [0.25] * 4, "aim": [0.25] * 4, "agreement": 0.0, "imbalance": 0.0}
    harm = {name: {"equity": equity} for name, equity in (("source_only", -0.5), ("adapted", 1.0))}
    (line,) = share_remarks({"shares": shares, "harm": harm})
    assert line.startswith("cannot tell whether the target is imbalanced")
    assert not share_remarks({"shares": shares, "harm": harm | {"source_only": {"equity": 0.9}}})
