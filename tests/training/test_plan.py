"""What a run opens and loads: once, and it is handed on."""

import hashlib
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.small_data import CALL, blobs, write_pictures
from torch import nn

import equida
from equida import plugins
from equida.cli import main
from equida.data import ImageDomain, array_domain, make_task, spec
from equida.data.feature_cache import ExtractionOptions
from equida.errors import InputError
from equida.models import backbone as backbones
from equida.models.backbone import Backbone
from equida.training.build import SeededBackbone
from equida.training.estimate import estimate
from equida.training.plan import make_plan
from equida.training.recipe import Recipe
from equida.training.request import AdaptRequest, Remarks, data_remarks
from equida.training.task_features import extract_shared

NETWORK = """
import torch
from torch import nn

def net():
    module = nn.Sequential(
        nn.Conv2d(3, 4, 5, 4), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    module.input_size = (3, 32, 32)
    return module
"""
FLAGS = ["--backbone", "plan_network:net", "--iterations", "2", "--batch-size", "4"]
FLAGS += ["--evaluate-every", "2", "--workers", "0", "--quiet"]


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders a and b with two classes, and a network whose weights depend on the seed."""
    write_pictures(tmp_path, ("a", "b"), ("mug", "pen"), count=3)
    (tmp_path / "plan_network.py").write_text(NETWORK)
    plugins.permit("plan_network:net")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a task was opened, and each backbone loaded."""
    counted: Counter[str] = Counter()
    open_task, factory = spec.open_task, backbones._from_factory

    def opened(data: Any, *rest: Any) -> Any:
        counted[f"task {Path(data.target).name}"] += 1
        return open_task(data, *rest)

    def loaded(name: str, *rest: Any) -> Backbone:
        counted[f"backbone {name}"] += 1
        return factory(name, *rest)

    for module in ("request", "plan", "launch"):
        monkeypatch.setattr(f"equida.training.{module}.open_task", opened)
    monkeypatch.setattr(backbones, "_from_factory", loaded)
    return counted


@pytest.mark.slow(reason="trains on images")
def test_a_run_on_images_opens_and_loads_once(images: Path, calls: Counter[str]) -> None:
    assert main(["adapt", "-s", "a", "-t", "b", *FLAGS, "-o", "run"]) == 0
    assert calls == {"task b": 1, "backbone plan_network:net": 1}


def test_a_run_on_features_loads_once_for_both_domains(images: Path, calls: Counter[str]) -> None:
    assert main(["adapt", "-s", "a", "-t", "b", *FLAGS, "-o", "run", "--features"]) == 0
    expected = {"task b": 1, "task features-1.safetensors": 1, "backbone plan_network:net": 1}
    assert calls == expected


def test_a_finished_run_loads_nothing(images: Path, calls: Counter[str]) -> None:
    argv = ["adapt", "-s", "a", "-t", "b", *FLAGS, "-o", "run"]
    assert main(argv) == 0
    calls.clear()
    assert main(argv) == 0
    assert calls == {"task b": 1}


def test_a_backbone_that_is_handed_on_changes_nothing(images: Path) -> None:
    """Random layers and the head start as they would without an estimate of the time."""
    fields = {"iterations": 2, "batch_size": 4, "evaluate_every": 2, "workers": 0}
    options: dict[str, Any] = {"backbone": "plan_network:net", "recipe_params": fields, "seed": 3}
    request = AdaptRequest("a", "b", **options)
    said: list[str] = []
    plan = make_plan(request, Remarks(said.append, advise=True))
    if not torch.cuda.is_available():
        assert plan.backbone is not None
        assert said[0].startswith("no GPU: training plan_network:net takes about ")
    assert make_plan(request).backbone is None
    advised = equida.adapt("a", "b", out="advised", progress=True, **options)
    silent = equida.adapt("a", "b", out="silent", progress=False, **options)
    weights = [load_file(run.path / "model.safetensors") for run in (advised, silent)]
    assert all(weights[1][name].equal(value) for name, value in weights[0].items())


def test_weights_are_recorded_by_their_digest_and_found_elsewhere(
    images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(backbones.load_backbone("plan_network:net").module.state_dict(), "w.pth")
    argv = ["adapt", "-s", "a", "-t", "b", *FLAGS, "-o", "run"]
    assert main([*argv, "--weights", "w.pth"]) == 0
    config = equida.load_run("run").config
    assert config.weights == str(images / "w.pth")
    assert config.weights_sha256 == hashlib.sha256((images / "w.pth").read_bytes()).hexdigest()
    (images / "w.pth").rename(images / "moved.pth")
    capsys.readouterr()
    assert main([*argv, "--weights", "moved.pth"]) == 0
    assert "is finished already" in capsys.readouterr().err
    torch.save(backbones.load_backbone("plan_network:net").module.state_dict(), "other.pth")
    assert main([*argv, "--weights", "other.pth"]) == 2
    assert "finished run of another configuration" in capsys.readouterr().err


def test_an_estimate_leaves_the_backbone_as_it_was() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 5))
    module.eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    known = Backbone(module, "toy", 5, (0.5,) * 3, (0.5,) * 3, (3, 8, 8), "")
    times = estimate(known, 10, Recipe(iterations=5))
    assert times.fine_tuning > 0
    assert all(module.state_dict()[name].equal(value) for name, value in before.items())
    assert not module.training
    assert all(parameter.grad is None for parameter in module.parameters())


def test_a_seeded_backbone_is_the_one_that_the_run_would_load(images: Path) -> None:
    first, second = (SeededBackbone.load("plan_network:net", None, 5) for _ in range(2))
    assert first.backbone.weights_sha256 == second.backbone.weights_sha256
    assert first.rng_state.equal(second.rng_state)


def test_features_of_a_finished_run_are_not_written_over(
    images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (images / "plan_network.py").write_text(NETWORK + NETWORK.replace("net()", "other()"))
    plugins.permit("plan_network:other")
    argv = ["adapt", "-s", "a", "-t", "b", *FLAGS, "--features", "-o", "run"]
    assert main(argv) == 0
    before = (images / "run/features-0.safetensors").read_bytes()
    capsys.readouterr()
    assert main([*argv, "--backbone", "plan_network:other"]) == 2
    said = capsys.readouterr().err
    assert "run holds a run on features of plan_network:net" in said
    assert "choose another --out" in said
    assert (images / "run/features-0.safetensors").read_bytes() == before
    torch.save(backbones.load_backbone("plan_network:net").module.state_dict(), "w.pth")
    assert main([*argv, "--weights", "w.pth"]) == 2
    assert (images / "run/features-0.safetensors").read_bytes() == before


def test_a_checkpoint_of_somebody_else_is_left_alone(
    images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (images / "mine").mkdir()
    torch.save({"model": torch.zeros(2), "epoch": 3}, "mine/checkpoint.pt")
    before = (images / "mine/checkpoint.pt").read_bytes()
    assert main(["adapt", "-s", "a", "-t", "b", *FLAGS, "-o", "mine"]) == 2
    assert "checkpoint.pt" in capsys.readouterr().err
    assert (images / "mine/checkpoint.pt").read_bytes() == before


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((8, 1), "new has 1 sample, fewer than a batch of 4: its samples are repeated"),
        ((2, 1), "shop has 2 samples and new has 1 sample, fewer than a batch of 4: their samples"),
    ],
)
def test_what_is_said_of_small_domains(sizes: tuple[int, int], said: str) -> None:
    """Before: "new has 1 samples"."""
    source = array_domain(np.zeros((sizes[0], 3)), np.arange(sizes[0]) % 2, name="shop")
    task = make_task(source, array_domain(np.ones((sizes[1], 3)), name="new"))
    assert data_remarks(task, 4)[0].startswith(said)


def test_what_is_said_of_features_of_several_domains(tmp_path: Path) -> None:
    """Before: "4 images of flat and new cam and old"."""
    images = [ImageDomain(tmp_path, ["1.jpg"], name=name) for name in ("flat", "new cam", "old")]
    done = Namespace(stored=1, images=3)
    extractor = Namespace(name="net", extract=lambda *_: done)
    for given, text in ((images, "3 images of flat, new cam and old"), (images[:1], "1 image of")):
        said: list[str] = []
        extract_shared(
            extractor,  # type: ignore[arg-type]
            given, tmp_path / "f", ExtractionOptions(), Remarks(said.append), cache=True,
        )  # fmt: skip
        assert said[0].startswith(f"features of {text}")
        assert said[1].startswith("features of 1 of 3 images were computed before (")


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("name", ["holdout", "label_smoothing"])
def test_settings_of_the_source_have_no_effect_without_it(name: str) -> None:
    data = blobs()
    run = equida.adapt((data.source, data.labels), data.target, out="run", **CALL)
    with pytest.raises(InputError, match=f"{name} has no effect with --from RUN"):
        equida.adapt(
            None, data.target, from_run=run, out="next", recipe_params={name: 0.2}, progress=False
        )


@pytest.mark.usefixtures("own_folder")
def test_another_configuration_is_named() -> None:
    data = blobs()
    pair = (data.source, data.labels), data.target
    equida.adapt(*pair, out="run", **CALL)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"method": "bnm"}, "method is 'nsm' there and 'bnm' here"),
        ({"seed": 3}, "seed is 0 there and 3 here"),
        ({"method_params": {"r": 0.75}}, "r is its default there and 0.75 here"),
    ]
    for others, said in changes:
        with pytest.raises(InputError, match=f"of another configuration .{said}.; choose another"):
            equida.adapt(*pair, out="run", **(others | CALL))
