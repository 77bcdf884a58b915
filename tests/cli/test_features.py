"""`equida features` as a user meets it, and its features on real photographs."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from sklearn.linear_model import LogisticRegression

import equida
from equida.cli import main
from equida.data.domain import ImageDomain
from equida.data.feature_cache import ExtractionOptions
from equida.errors import InputError
from equida.models import extractor
from equida.models.weights import WHEELS, wheel_file
from equida.progress import Bar
from equida.torch_modes import decoding_threads

NETWORK = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    network.input_size = (3, 28, 28)
    return network
"""


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten images in `photos` and a network of their own, in the current folder."""
    for number in range(10):
        path = tmp_path / "photos" / ("mug", "pen")[number % 2] / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (40, 50, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    (tmp_path / "cli_network.py").write_text(NETWORK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


CALL = ["features", "photos", "--out", "f.safetensors", "--backbone", "cli_network:make"]


def _stored(path: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    with safe_open(path, framework="pt") as stored:
        tensors = {key: stored.get_tensor(key) for key in stored.keys()}  # noqa: SIM118
        return tensors, json.loads(stored.metadata()["equida"])


def test_a_folder_becomes_a_file_once(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CALL, "--batch-size", "4"]) == 0
    assert capsys.readouterr().out.startswith("f.safetensors: 10 images, 10 computed in ")
    tensors, described = _stored("f.safetensors")
    assert tensors["features"].shape == (10, 6)
    assert described["backbone"] == "cli_network:make"
    assert described["transform"].startswith("centre-crop resize=32 crop=28 square=False")
    assert main([*CALL, "--batch-size", "4"]) == 0
    nothing = "nothing to do: f.safetensors holds the features of all 10 images\n"
    assert capsys.readouterr().out == nothing


def test_views_and_half_precision(workplace: Path) -> None:
    assert main([*CALL, "--views", "2", "--dtype", "float16"]) == 0
    tensors, described = _stored("f.safetensors")
    assert tensors["features"].shape == (10, 3, 6)
    assert tensors["features"].dtype == torch.float16
    assert described["view_transforms"][0].startswith("random-crop resize=32 crop=28 square=True")


def test_unreadable_images(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("mug/0.jpg", "pen/9.jpg"):
        (workplace / "photos" / name).write_bytes(b"")
    assert main(CALL) == 2
    error = capsys.readouterr().err
    assert "2 of 10 images cannot be read" in error
    assert all(name in error for name in ("mug/0.jpg", "pen/9.jpg", "--skip-unreadable"))
    assert "Traceback" not in error
    assert main([*CALL, "--skip-unreadable"]) == 0
    printed = capsys.readouterr()
    assert "8 images, 8 computed" in printed.out
    assert "2 unreadable left out" in printed.out
    assert printed.err.count("left out: ") == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--backbone", "lenet"], "lenet has no trained weights; give --weights FILE"),
        (["--weights", "absent.pth"], "no such file"),
        (["--batch-size", "0"], "batch size is 0; it must be from 1"),
        (["--out", "f.npz"], r"expected a name in .safetensors"),
    ],
)
def test_wrong_calls_are_one_line(
    workplace: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    assert main([*CALL, *flags]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.strip().count("\n") == 0


def test_nothing_changed_means_no_network_is_loaded(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With weights in a known file, names and digests are enough."""
    from equida import plugins
    from equida.models.backbone import load_backbone

    plugins.permit("cli_network:make")
    torch.save(load_backbone("cli_network:make").module.state_dict(), "w.pth")
    assert main([*CALL, "--weights", "w.pth"]) == 0
    capsys.readouterr()

    def refuse(self: extractor.FeatureExtractor) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr(extractor.FeatureExtractor, "backbone", property(refuse))
    assert main([*CALL, "--weights", "w.pth"]) == 0
    assert capsys.readouterr().out.startswith("nothing to do")
    with pytest.raises(AssertionError, match="loaded"):
        main([*CALL, "--weights", "w.pth", "--views", "1"])


@pytest.fixture
def branch(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What `image_domains` asks of `equida.data`."""
    asked: list[tuple[Any, ...]] = []
    office = SimpleNamespace(
        name="office31",
        own=None,
        root="",
        embedded=False,
        domains=[SimpleNamespace(key=key) for key in "ADW"],
        domain=lambda name: SimpleNamespace(key=name[0].upper()),
    )
    digits = SimpleNamespace(name="digits", embedded=True)

    def note(*arguments: Any, **options: Any) -> ImageDomain:
        asked.append((*arguments, *options.values()))
        return ImageDomain("", [], name="some")

    known = {"office31": office, "digits": digits}
    monkeypatch.setattr(extractor, "benchmark", known.__getitem__)
    monkeypatch.setattr(extractor, "load_domain", note)
    monkeypatch.setattr(extractor, "open_domain", note)
    return asked


def test_a_data_set_gives_all_its_domains_or_those_asked_for(
    branch: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    assert len(extractor.image_domains("office31", tmp_path, ())) == 3
    assert [key for _, key, _ in branch] == ["A", "D", "W"]
    branch.clear()
    extractor.image_domains("office31", tmp_path, ("webcam",))
    assert [key for _, key, _ in branch] == ["W"]
    branch.clear()
    extractor.image_domains(str(tmp_path), None, ())
    assert branch == [(str(tmp_path), None)]


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ("office31", "say where it is with --data DIR"),
        ("digits", "needs no features"),
        ("no/such/folder", "no such folder or list"),
    ],
)
def test_images_that_cannot_be_found(
    branch: list[tuple[Any, ...]], images: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        extractor.image_domains(images, None, ())


def test_help_needs_neither_torch_nor_timm() -> None:
    import subprocess

    code = (
        "import sys; from equida.cli import main\n"
        "try: main(['features', '--help'])\n"
        "except SystemExit: pass\n"
        "print(bool({'torch', 'timm', 'torchvision'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--skip-unreadable" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs a system with affinities")
@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (6, 3)])
def test_decoding_takes_half_of_the_cores_that_the_process_may_use(
    monkeypatch: pytest.MonkeyPatch, cores: int, threads: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    assert decoding_threads() == threads


needs_wheel = pytest.mark.skipif(
    wheel_file("tf_efficientnet_lite0") is None,
    reason=f"needs the wheel {WHEELS['tf_efficientnet_lite0']}",
)


@pytest.mark.slow(reason="features of photographs")
@needs_wheel
def test_features_are_those_of_the_plain_network_behind_torchvisions_transforms(
    workplace: Path,
) -> None:
    from equida.models.backbone import load_backbone

    call = ["features", "photos", "--out", "f.safetensors", "--batch-size", "4"]
    assert main(call) == 0
    module = load_backbone("tf_efficientnet_lite0").module
    from torchvision import transforms as tv

    transform = tv.Compose(
        [
            tv.Resize(256),
            tv.CenterCrop(224),
            tv.ToTensor(),
            tv.Normalize((127 / 255,) * 3, (128 / 255,) * 3),
        ]
    )
    files = sorted((workplace / "photos").glob("*/*"))
    with torch.inference_mode():
        expected = module(torch.stack([transform(Image.open(file)) for file in files]))
    torch.testing.assert_close(
        _stored("f.safetensors")[0]["features"], expected, rtol=1e-4, atol=1e-4
    )


@pytest.mark.slow(reason="features of many photographs")
@needs_wheel
def test_features_of_one_domain_classify_another(office31: Path, tmp_path: Path) -> None:
    """Ten classes, five images each; with all of them webcam to dslr is 99.4 %."""
    chosen = sorted(path.name for path in (office31 / "webcam" / "images").iterdir())[:20:2]
    domains = []
    for domain in ("webcam", "dslr"):
        folder = office31 / domain / "images"
        paths = [f"{c}/{f.name}" for c in chosen for f in sorted((folder / c).iterdir())[:5]]
        labels = np.repeat(np.arange(len(chosen)), 5)
        domains.append(ImageDomain(folder, paths, name=domain, classes=chosen, labels=labels))
    out, options = tmp_path / "f.safetensors", ExtractionOptions(batch_size=20)
    extractor.FeatureExtractor().extract(domains, out, options, Bar("silent"))
    tensors, _ = _stored(str(out))
    rows = torch.nn.functional.normalize(tensors["features"]).numpy()
    labels, owners = tensors["labels"].numpy(), tensors["domains"].numpy()
    classifier = LogisticRegression(C=10, max_iter=1000)
    classifier.fit(rows[owners == 0], labels[owners == 0])
    assert classifier.score(rows[owners == 1], labels[owners == 1]) >= 0.96


@pytest.mark.parametrize("out", ["f.npz", "photos", "notes.safetensors"])
def test_a_wrong_name_is_refused_before_images_are_listed_or_a_network_is_loaded(
    workplace: Path, out: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("too early")

    (workplace / "notes.safetensors").write_text("mine")
    monkeypatch.setattr(extractor, "load_backbone", refuse)
    with pytest.raises(InputError):
        equida.extract_features("photos", backbone="cli_network:make", out=out)
    monkeypatch.setattr(extractor, "image_domains", refuse)
    assert main([*CALL, "--out", out]) == 2
    assert out in capsys.readouterr().err
