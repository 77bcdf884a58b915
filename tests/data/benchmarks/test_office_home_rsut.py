"""Office-Home RS-UT: samples by image lists, other ones as source than as target."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from equida.cli import main
from equida.data import ArrayDomain, array_domain, benchmark, image_folder, load_domain, load_task
from equida.data.lists import listed_samples
from equida.data.shares import Role
from equida.data.spec import DataSpec, data_sha256
from equida.errors import InputError

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
CLASSES = benchmark("office_home_rsut").classes


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A feature file with four rows of each class, and lists that choose two as source (the first
    class three times as many) and one as target."""
    folder = tmp_path_factory.mktemp("rsut")
    generator = np.random.default_rng(0)
    centres = 3 * generator.normal(size=(65, 16))
    arrays: dict[str, np.ndarray] = {"classes": np.array(CLASSES)}
    (folder / "lists").mkdir()
    for domain, place in (
        ("Clipart", "Clipart"),
        ("Product", "Product"),
        ("RealWorld", "Real World"),
    ):
        labels = np.repeat(np.arange(65), 4)
        arrays[f"{domain}_x"] = (centres[labels] + generator.normal(size=(260, 16))).astype("f4")
        arrays[f"{domain}_y"] = labels
        paths = [f"{place}/{CLASSES[k]}/0000{n % 4 + 1}.jpg" for n, k in enumerate(labels)]
        arrays[f"{domain}_path"] = np.array(paths)
        lines = [f"{path} {label}" for path, label in zip(paths, labels, strict=True)]
        (folder / "lists" / f"{domain}_RS.txt").write_text("\n".join([*lines[1::4], *lines[2::4]]))
        (folder / "lists" / f"{domain}_UT.txt").write_text("\n".join(lines[::4]))
    np.savez(folder / "features.npz", **arrays)  # type: ignore[arg-type]
    return folder / "features.npz"


def test_a_domain_has_other_samples_as_source_than_as_target(features: Path) -> None:
    task = load_task("office_home_rsut", "Rw2Cl", data_dir=features)
    assert isinstance(task.source, ArrayDomain)
    assert isinstance(task.target, ArrayDomain)
    assert (len(task.source), len(task.target)) == (130, 65)
    assert task.source.paths is not None
    assert task.source.paths[0] == "Real World/Alarm_Clock/00002.jpg"
    assert {path[-9:] for path in task.target.paths or ()} == {"00001.jpg"}
    assert len(load_domain("office_home_rsut", "Cl", features)) == 260


@pytest.mark.slow(reason="several runs")
def test_bench_shows_mean_class_accuracy_by_task_and_accuracy_beside(
    features: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "office_home_rsut", "--data", str(features), "--methods", "nsm", "--seeds"]
    words += ["1", "--tasks", "Rw2Pr,Cl2Pr", "--jobs", "1", "--out", str(tmp_path / "runs")]
    words += ["--quiet", "--iterations", "4", "--evaluate-every", "4"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("Mean class accuracy (%) on Office-Home RS-UT")
    assert [word in out for word in ("Rw→Pr", "Cl→Pr", "Avg", "Accuracy")] == [True] * 4
    (tmp_path / "moved").mkdir()
    for file in (features.parent / "lists").iterdir():
        (tmp_path / "moved" / file.name).write_bytes(file.read_bytes())
    assert main([*words, "--lists", str(tmp_path / "moved")]) == 0
    assert len(list((tmp_path / "runs").glob("*/result.json"))) == 2  # nothing was done again


def test_other_lists_are_other_data(features: Path, tmp_path: Path) -> None:
    for file in (features.parent / "lists").iterdir():
        (tmp_path / file.name).write_text(file.read_text().rsplit("\n", 1)[0])
    specs = [
        DataSpec("Cl", "Pr", "office_home_rsut", str(features), lists=str(lists))
        for lists in (features.parent / "lists", tmp_path)
    ]
    assert data_sha256(specs[0]) != data_sha256(specs[1])


def test_missing_lists_are_said(
    features: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "office_home_rsut", "--data", str(features), "--out", str(tmp_path)]
    assert main([*words, "--lists", str(tmp_path)]) == 2
    assert "has no Clipart_RS.txt and Clipart_UT.txt" in capsys.readouterr().err
    words[1] = "office31"
    assert main([*words, "--lists", str(tmp_path)]) == 2
    assert "office31 uses all its samples" in capsys.readouterr().err
    assert main(["doctor", "office_home_rsut", "--data", str(features), "--lists", str(tmp_path)])
    assert "Clipart_RS.txt" in capsys.readouterr().out
    main(["doctor", "office_home_rsut", "--data", str(features)])
    assert "its lists choose 130 as source, 65 as target" in capsys.readouterr().out


def test_images_are_chosen_by_the_same_lists(tmp_path: Path) -> None:
    for name in ("ant/1.jpg", "ant/2.jpg", "bee/1.jpg"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "photos" / name)
    (tmp_path / "list.txt").write_text("/gone/photos/bee/1.jpg 7\n/gone/photos/ant/2.jpg 3\n")
    chosen = listed_samples(image_folder(tmp_path / "photos"), tmp_path / "list.txt")
    assert [chosen.identity(i) for i in range(2)] == ["bee/1.jpg", "ant/2.jpg"]
    assert chosen.labels is not None
    assert chosen.labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("a/ant/1.jpg 0\na/cat/9.jpg 1", r"list\.txt:2: 'a/cat/9.jpg' is not among the 4 samples"),
        (
            "a/ant/1.jpg 0\na/bee/1.jpg 0",
            r"list\.txt:2: label 0 of 'a/bee/1.jpg'; expected that of",
        ),
        ("a/ant/1.jpg 0\na/ant/2.jpg 1", r"list\.txt:2: label 1 of 'a/ant/2.jpg'"),
        ("1.jpg", r"may be a/ant/1.jpg and a/bee/1.jpg of W"),
    ],
)
def test_lists_that_do_not_fit(tmp_path: Path, lines: str, message: str) -> None:
    paths = ["a/ant/1.jpg", "a/ant/2.jpg", "a/bee/1.jpg", "a/bee/2.jpg"]
    classes = ["ant", "bee"]
    domain = ArrayDomain(
        np.zeros((4, 2)), name="W", classes=classes, labels=[0, 0, 1, 1], paths=paths
    )
    (tmp_path / "list.txt").write_text(lines)
    with pytest.raises(InputError, match=message):
        listed_samples(domain, tmp_path / "list.txt")


def test_nothing_can_be_chosen_from_an_empty_domain(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("a/ant/1.jpg 0")
    domain = ArrayDomain(np.zeros((0, 2)), name="W", paths=[])
    with pytest.raises(InputError, match="is not among the 0 samples of W; expected paths"):
        listed_samples(domain, tmp_path / "list.txt")


def test_rows_without_paths_cannot_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("a/ant/1.jpg 0")
    domain = array_domain(np.zeros((2, 2)), ["ant", "bee"], name="W")
    with pytest.raises(InputError, match="the rows of W have none"):
        listed_samples(domain, tmp_path / "list.txt")


def test_the_published_lists_fit_the_features_of_all_images() -> None:
    lists, file = SHARED / "lists" / "office-home-rsut", SHARED / "officehome_resnet50.npz"
    if not lists.is_dir() or not file.is_file():
        pytest.skip(f"needs the lists in {lists} and the features in {file}")
    roles: tuple[Role, ...] = ("source", "target")
    chosen = {
        (key, role): load_domain("office_home_rsut", key, file, role=role, lists=lists)
        for key in ("Cl", "Pr", "Rw")
        for role in roles
    }
    lengths = {place: len(domain) for place, domain in chosen.items()}
    assert lengths == {
        ("Cl", "source"): 1017, ("Cl", "target"): 1017, ("Pr", "source"): 1984,
        ("Pr", "target"): 1985, ("Rw", "source"): 1253, ("Rw", "target"): 1253,
    }  # fmt: skip
    first, last = chosen["Rw", "source"], chosen["Rw", "target"]
    assert np.corrcoef(first.class_counts(), last.class_counts())[0, 1] < -0.5
