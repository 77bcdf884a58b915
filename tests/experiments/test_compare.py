"""Which method to use on two domains of one's own."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests import small_data

import equida
from equida import bench
from equida.data import array_domain, feature_domain
from equida.errors import InputError
from equida.evaluation.validators import VALIDATORS
from equida.experiments import run as experiments
from equida.experiments.compare import CompareRequest, best_rows, pick_notes, run_compare
from equida.experiments.execute import Ended, Workers, do_run
from equida.experiments.grid import PlannedRun, check_selected
from equida.experiments.run import BenchRequest, run_bench
from equida.runs.read import load_run
from equida.runs.table import Cell, Column, Row, Table, ranked
from equida.runs.variant import Variant
from equida.training.request import Remarks

TINY: dict[str, Any] = {"iterations": 4, "evaluate_every": 2, "batch_size": 20}
ONE: Any = {"methods": "nsm", "seeds": 1, "jobs": 1, "recipe_params": TINY, "progress": False}
SEARCH: Any = {"trials": 1, "jobs": 1, "recipe_params": TINY, "progress": False}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs are done in this process; the folders of those that were done."""
    done: list[str] = []

    def in_this_process(planned: Sequence[PlannedRun], workers: Workers) -> Iterator[Ended]:
        for run in planned:
            done.append(run.folder.name)
            yield do_run(run.config, str(run.folder))

    monkeypatch.setattr(experiments, "do_runs", in_this_process)
    return done


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    """Two moved domains of three classes, and the second without labels."""
    random = np.random.default_rng(0)
    centres, labels = 3.0 * random.normal(size=(3, 6)), np.arange(45) % 3
    a, b = (centres[labels] + move + random.normal(size=(45, 6)) for move in (0.0, 0.5))
    file = tmp_path / "blobs.npz"
    names = np.array(["x", "y", "z"])
    np.savez(file, a_x=a, a_y=labels, b_x=b, b_y=labels, bare_x=b, classes=names)
    return file


def request(blobs: Path, out: Path, target: str = "b", **more: Any) -> CompareRequest:
    usual: dict[str, Any] = {"methods": "source_only,nsm", "seeds": 2, "recipe_params": TINY}
    return CompareRequest(f"{blobs}:a", f"{blobs}:{target}", out, **(usual | more))


def test_one_table_with_scores_beside_and_resumed(
    blobs: Path, tmp_path: Path, here: list[str]
) -> None:
    table = run_compare(request(blobs, tmp_path / "out"), Remarks())
    assert [row.title for row in table.rows] == ["Source only", "NSM"]
    keys = [column.key for column in table.columns]
    assert keys[:3] == ["a2b", "source_accuracy", "entropy"]
    assert len(here) == 4
    for row in table.rows:
        runs = [load_run(tmp_path / "out" / name) for name in here if row.variant.method in name]
        assert row.cells["a2b"].mean == pytest.approx(
            50.0 * sum(run.accuracy or 0.0 for run in runs)
        )
        last = [run.result["last"]["bnm"] for run in runs if run.result]
        assert row.cells["bnm"].mean == pytest.approx(sum(last) / 2)
    (picked,) = best_rows(table, "bnm")
    assert f"{picked.title} (" in table.notes[-2]
    assert "With the target's labels (which choose no step and no method here)" in table.notes[-1]
    assert "With the target's labels" in (tmp_path / "out" / "table.md").read_text()
    here.clear()
    again = run_compare(request(blobs, tmp_path / "out", methods="source_only,nsm,bnm"), Remarks())
    assert [name.split("-")[1] for name in here] == ["bnm", "bnm"]
    assert len(again.rows) == 3


def scored(**rows: tuple[float, float, float]) -> Table:
    """A finished table: by method its accuracy, its snd and its bnm."""
    keys = ("a2b", "snd", "bnm")
    columns = [Column(key, key, accuracy=key == "a2b", score=key != "a2b") for key in keys]
    columns += [Column(name, name, accuracy=False) for name in VALIDATORS if name not in keys]
    made = []
    for method, values in rows.items():
        cells = dict.fromkeys(VALIDATORS, Cell())
        cells |= {key: Cell({0: value}) for key, value in zip(keys, values, strict=True)}
        made.append(Row(Variant(method), cells))
    return Table("Accuracy", tuple(columns), ranked(made, columns), (0,))


def test_ties_are_named_and_the_best_is_not_behind_itself() -> None:
    """Before: the first of equal methods was picked, and stood behind the best by 0.0 points."""
    one, two = pick_notes(
        scored(source_only=(80.0, 0.5, 0.2), nsm=(80.04, 0.5001, 0.3)), labelled=True
    )
    assert "would pick: NSM (bnm). Source only and NSM have the same snd. A score" in one
    assert "agree" not in one
    assert two.endswith("Source only and NSM are best.")
    one, two = pick_notes(scored(source_only=(80, 0.5, 0.2), nsm=(80, 0.5, 0.2)), labelled=True)
    assert one.startswith(
        "Without a target label, no score picks one method. Source only and NSM have the same bnm"
    )
    one, two = pick_notes(
        scored(source_only=(70, 0.6, 0.1), nsm=(80, 0.5, 0.1), bnm=(75, 0.5, 0.2)), labelled=True
    )
    assert "They disagree" in one
    assert two.endswith(
        "the best is NSM; behind it, of those that a score would pick, by points of accuracy:"
        " BNM 5.0, Source only 10.0."
    )
    one, two = pick_notes(scored(source_only=(70, 0.4, 0.1), nsm=(80, 0.5, 0.2)), labelled=True)
    assert "They agree" in one
    assert two.endswith("the best is NSM.")
    assert "(which choose no step and no method here), the best is" in two
    assert pick_notes(scored(nsm=(80, 0.5, 0.2)), labelled=True) == []


def test_labels_that_choose_are_not_said_to_choose_nothing() -> None:
    table = scored(source_only=(70, 0.4, 0.1), nsm=(80, 0.5, 0.2))
    first, row = table.rows
    told = replace(row, variant=Variant("nsm", {"prior": "oracle"}))
    for other in (replace(table, select="oracle"), replace(table, rows=(first, told))):
        assert pick_notes(other, labelled=True)[1] == "With the target's labels, the best is NSM."


@pytest.mark.slow(reason="a whole comparison")
def test_without_target_labels_there_is_no_accuracy(
    blobs: Path, tmp_path: Path, here: list[str]
) -> None:
    table = run_compare(request(blobs, tmp_path / "out", "bare", seeds=1), Remarks())
    assert not any(column.accuracy for column in table.columns)
    assert table.caption.startswith("Label-free scores on a2bare")
    assert "Without a target label, the scores would pick" in table.notes[-1]
    assert all(row.cells["entropy"].mean is not None for row in table.rows)
    labelled = request(blobs, tmp_path / "two", seeds=1, ignore_target_labels=True)
    assert not any(column.accuracy for column in run_compare(labelled, Remarks()).columns)


def test_no_oracle_without_target_labels(blobs: Path, tmp_path: Path, here: list[str]) -> None:
    """Before: a table of dashes, and later an advice that was refused."""
    asked = request(blobs, tmp_path / "out", "bare", select="oracle")
    said = "--select oracle needs target labels, and bare has none; choose last or one of "
    with pytest.raises(InputError, match=said) as error:
        run_compare(asked, Remarks())
    offered = str(error.value).partition(" one of ")[2].split(", ")
    assert {"bnm", "snd"} <= set(offered)
    for name in offered:
        check_selected([Variant("nsm")], name)
    assert not here
    assert not (tmp_path / "out").exists()


def test_rows_in_memory(tmp_path: Path, here: list[str]) -> None:
    x, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 2
    source, target = array_domain(x, y, name="source"), array_domain(x + 1, name="target")
    asked = CompareRequest(source, target, tmp_path, "nsm", 1, recipe_params=TINY)
    (row,) = run_compare(asked, Remarks()).rows
    assert row.cells["snd"].count == 1


def test_mistakes_are_found_before_data_are_read(tmp_path: Path) -> None:
    asked = CompareRequest("nowhere", "nowhere", tmp_path / "out")
    changes: list[tuple[dict[str, Any], str]] = [
        ({"methods": "nsm,nms"}, "did you mean 'nsm'"),
        ({"seeds": "none"}, "--seeds is 'none'"),
        ({"select": "best"}, "--select is 'best'"),
        (
            {"select": "oracle", "ignore_target_labels": True},
            "needs target labels, and --ignore-target-labels leaves them out",
        ),
        ({"recipe": "quick"}, "recipe 'quick' does not exist"),
        ({}, "nowhere does not exist"),
    ]
    for change, said in changes:
        with pytest.raises(InputError, match=said):
            run_compare(dataclasses.replace(asked, **change), Remarks())


def test_rows_that_have_changed_need_another_folder(tmp_path: Path, here: list[str]) -> None:
    """Before: the labels of the first call were used with the rows of the second, and later the
    first call's rows and table were lost."""
    random = np.random.default_rng(0)
    y = np.arange(60) % 2
    x = random.normal(size=(60, 4)) + 6 * y[:, None]
    order = np.argsort(y)
    params = {"iterations": 60, "evaluate_every": 60, "batch_size": 20}

    def compared(rows: NDArray[Any], labels: NDArray[Any], out: str) -> float:
        source, target = (array_domain(rows, labels, name=name) for name in ("source", "target"))
        out_of = tmp_path / out
        asked = CompareRequest(source, target, out_of, "source_only", 1, recipe_params=params)
        (row,) = run_compare(asked, Remarks()).rows
        return row.cells["source2target"].mean or 0.0

    assert compared(x, y, "one") > 95.0
    with pytest.raises(InputError, match="one holds runs on other data; choose another --out"):
        compared(x[order], y[order], "one")
    assert compared(x[order], y[order], "other") > 95.0
    assert len(here) == 2


def test_what_somebody_else_has_made_is_kept(blobs: Path, tmp_path: Path, here: list[str]) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "table.csv").write_text("mine")
    with pytest.raises(InputError, match=r"table\.csv"):
        run_compare(request(blobs, out), Remarks())
    (out / "table.csv").unlink()
    np.savez(out / "source.npz", embeddings=np.zeros(3))
    x, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 2
    source = array_domain(x, y, name="source")
    with pytest.raises(InputError, match=r"source\.npz"):
        run_compare(CompareRequest(source, source, out, "nsm", 1, recipe_params=TINY), Remarks())
    with np.load(out / "source.npz") as kept:
        assert kept.files == ["embeddings"]
    assert not here


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"weights": "nope.pth"}, "--weights has no effect"),
        ({"backbone": "resnet50"}, "--backbone has no effect"),
        ({"recipe_params": TINY | {"ten_crop": True}}, "--ten-crop has no effect"),
        ({"recipe_params": TINY | {"freeze": "all"}}, "--freeze has no effect"),
        ({"jobs": -1}, "--jobs is -1"),
    ],
)
def test_flags_that_would_change_nothing(
    blobs: Path, tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        run_compare(request(blobs, tmp_path / "out", **more), Remarks())


def test_methods_with_equity_aim_at_the_prior(blobs: Path, tmp_path: Path, here: list[str]) -> None:
    asked = request(
        blobs, tmp_path / "out", methods="source_only,nsm,clusters+nsm", seeds=1, prior="estimate"
    )
    table = run_compare(asked, Remarks())
    assert [row.title for row in table.rows] == [
        "Source only",
        "NSM (prior=estimate)",
        "Clusters+NSM (prior=estimate)",
    ]
    aims = [set(load_run(tmp_path / "out" / name).config.aims) for name in here]
    assert aims == [set(), {"nsm"}, {"clusters", "nsm"}]
    with pytest.raises(InputError, match="prior: neither the recipe nor any of source_only has it"):
        run_compare(
            request(blobs, tmp_path / "no", methods="source_only", prior=[1, 1, 1]), Remarks()
        )


def test_a_costly_score_that_no_run_computes_is_refused(
    blobs: Path, tmp_path: Path, here: list[str]
) -> None:
    """Before, every run was done for a table of dashes."""
    with pytest.raises(InputError, match=r"--select dev is computed only where .* add --keep dev"):
        run_compare(request(blobs, tmp_path / "out", select="dev"), Remarks())
    with pytest.raises(InputError, match=r"--select dev is computed only where"):
        bench(blobs, select="dev", methods=["nsm"], out=tmp_path / "grid", progress=False)
    assert here == []
    kept = request(blobs, tmp_path / "out", select="dev", recipe_params={**TINY, "keep": "dev"})
    table = run_compare(kept, Remarks())
    assert all(row.cells[table.columns[0].key].mean is not None for row in table.rows)


@pytest.mark.parametrize("prior", [[0.5, 0.5], {"x": 0.5, "other": 0.5}])
def test_shares_that_do_not_fit_the_classes_are_refused_before_a_run(
    blobs: Path, tmp_path: Path, here: list[str], prior: Any
) -> None:
    """Before, `bench` trained the other methods and called this one failed."""
    with pytest.raises(InputError, match=r"2 shares; expected 3|other"):
        bench(
            blobs,
            prior=prior,
            methods=["source_only", "nsm"],
            tasks=["a2b"],
            out=tmp_path / "grid",
            progress=False,
        )
    with pytest.raises(InputError, match=r"2 shares; expected 3|other"):
        run_compare(request(blobs, tmp_path / "out", prior=prior), Remarks())
    assert here == []


def test_a_table_of_targets_without_labels_has_scores(
    blobs: Path, tmp_path: Path, here: list[str]
) -> None:
    """Before: "Accuracy (%)" above dashes."""
    said: list[str] = []
    with np.load(blobs) as stored:
        np.savez(tmp_path / "two.npz", a_x=stored["a_x"], a_y=stored["a_y"], b_x=stored["b_x"])
    asked = BenchRequest(
        str(tmp_path / "two.npz"), tmp_path / "runs", methods="source_only,nsm", seeds=1,
        recipe_params=TINY,
    )  # fmt: skip
    table = run_bench(asked, Remarks(said.append))
    assert any("a2b has no labels: the table has no accuracies" in line for line in said)
    assert "knn_balance" in [column.key for column in table.columns]
    # Nor is there a column that no run has computed.
    assert all(row.cells[each.key].mean is not None for row in table.rows for each in table.columns)


@pytest.mark.usefixtures("own_folder")
def test_compare_and_tune_keep_every_view() -> None:
    """Before: all but the first were dropped without a word; of digits one row of pixels stayed."""
    data = small_data.blobs()
    views = np.stack([data.source, data.source + 1.0, data.source - 1.0], 1)
    equida.compare((views, data.labels), views + 0.5, out="c", **ONE)
    np.testing.assert_array_equal(feature_domain("c/source.npz").values, views)
    equida.tune((views, data.labels), views + 0.5, out="t", **SEARCH)
    np.testing.assert_array_equal(feature_domain("t/target.npz").values, views + 0.5)


@pytest.mark.usefixtures("own_folder")
def test_two_comparisons_are_two_folders() -> None:
    """Before: the second replaced the data and the table of the first."""
    data = small_data.blobs()
    pair = (data.source, data.labels), (data.target, data.labels)
    other = (data.source[:, ::-1].copy(), data.labels), pair[1]
    for source, target in (pair, other):
        equida.compare(source, target, **ONE)
        equida.tune(source, target, **SEARCH)
    assert len([*Path("runs").glob("source2target-compare-*/table.csv")]) == 2
    assert len([*Path("runs").glob("source2target-tune-*/search.json")]) == 2
    equida.compare(*pair, out="c", **ONE)
    before = {file: file.read_bytes() for file in Path("c").rglob("*.*") if file.is_file()}
    for call in (equida.compare, equida.tune):
        with pytest.raises(InputError, match="c holds runs on other data; choose another --out"):
            call(*other, out="c", **(ONE if call is equida.compare else SEARCH))
    assert before == {file: file.read_bytes() for file in Path("c").rglob("*.*") if file.is_file()}
    equida.compare(*pair, out="c", **ONE)
    # Labels are a setting, not other data.
    equida.compare(*pair, out="c", ignore_target_labels=True, **ONE)
    equida.tune(*pair, out="t", oracle=True, **SEARCH)
    with pytest.raises(InputError, match="t holds a search with another value of score"):
        equida.tune(*pair, out="t", **SEARCH)


@pytest.mark.usefixtures("own_folder")
@pytest.mark.slow(reason="computes features")
def test_other_images_are_refused_before_features_are_computed() -> None:
    """Before: refused once the features of the runs that are there had been replaced."""
    small_data.write_pictures(Path(), ["a", "b"], ["red", "blue"])
    options: dict[str, Any] = {"backbone": "tiny_backbone:net", "out": "c"}
    equida.compare("a", "b", **options, **ONE)
    equida.tune("a", "b", **(options | {"out": "t"}), **SEARCH)
    files = [*Path("c").glob("*.safetensors"), *Path("t").glob("*.safetensors")]
    before = {file: file.read_bytes() for file in files}
    assert len(before) == 4
    with pytest.raises(InputError, match="c holds runs on other data"):
        equida.compare("b", "a", **options, **ONE)
    with pytest.raises(InputError, match="t holds a search with other data"):
        equida.tune("b", "a", **(options | {"out": "t"}), **SEARCH)
    assert before == {file: file.read_bytes() for file in files}


@pytest.mark.usefixtures("own_folder")
def test_two_domains_of_one_file_the_other_way_round() -> None:
    small_data.write_blobs(Path("rows.npz"))
    equida.compare("rows.npz:a", "rows.npz:b", out="c", **ONE)
    with pytest.raises(InputError, match="c holds runs on other data"):
        equida.compare("rows.npz:b", "rows.npz:a", out="c", **ONE)


@pytest.mark.usefixtures("own_folder")
def test_files_of_one_name_in_two_folders_are_not_mixed() -> None:
    """Before: their default folder is one, where the second table replaced the first."""
    data = small_data.blobs()
    for number in (1, 2):
        Path(f"d{number}").mkdir()
        np.savez(f"d{number}/src.npz", X=data.source * number, y=data.labels)
        np.savez(f"d{number}/tgt.npz", X=data.target, y=data.labels)
    equida.compare("d1/src.npz", "d1/tgt.npz", **ONE)
    with pytest.raises(InputError, match="src2tgt-compare holds runs on other data"):
        equida.compare("d2/src.npz", "d2/tgt.npz", **ONE)
    Path("d1").rename("moved")
    table = equida.compare("moved/src.npz", "moved/tgt.npz", **ONE)
    assert len([*Path("runs/src2tgt-compare").glob("*/result.json")]) == len(table.rows) == 1


@pytest.mark.usefixtures("own_folder")
def test_one_method_is_not_compared_with_others() -> None:
    """Before: all scores agreed that it is the best."""
    data = small_data.blobs()
    pair = (data.source, data.labels), (data.target, data.labels)
    table = equida.compare(*pair, out="c", **ONE)
    assert not [note for note in table.notes if "pick" in note or "the best" in note]
