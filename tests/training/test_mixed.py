"""A feature file on one side and images on the other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file

import equida
from equida.errors import InputError
from equida.training.plan import make_plan
from equida.training.request import AdaptRequest, Remarks

BACKBONE = """
import torch
from torch import nn

def net():
    torch.manual_seed({seed})
    module = nn.Sequential(nn.Conv2d(3, 8, 5, 4), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    module.input_size = (3, 32, 32)
    return module
"""
TINY: dict[str, Any] = {"iterations": 2, "evaluate_every": 2, "batch_size": 6}


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for domain in ("photos", "drawings"):
        for number, name in enumerate(("red", "blue")):
            (tmp_path / domain / name).mkdir(parents=True)
            for count in range(3):
                colour = (250 - 200 * number, 10 * count, 50 + 200 * number)
                Image.new("RGB", (40, 40), colour).save(tmp_path / domain / name / f"{count}.png")
    (tmp_path / "mixed_net.py").write_text(BACKBONE.format(seed=0))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow(reason="computes features")
@pytest.mark.parametrize("stored", ["photos", "drawings"])
def test_features_of_the_images_come_from_the_files_network(folders: Path, stored: str) -> None:
    pair = {"photos": "photos", "drawings": "drawings"}
    file = folders / f"{stored}.safetensors"
    equida.extract_features(stored, backbone="mixed_net:net", out=file)
    pair[stored] = str(file)
    asked = AdaptRequest(
        pair["photos"], pair["drawings"], backbone="mixed_net:net", recipe_params=TINY
    )
    plan = make_plan(asked, Remarks())
    both = equida.extract_features(folders / "drawings", backbone="mixed_net:net")
    target = plan.task.target
    rows = np.stack([np.asarray(target[index]) for index in range(len(target))])
    np.testing.assert_allclose(rows, both.x, rtol=0, atol=1e-6)
    assert plan.config.takes_images
    assert plan.folder.parent.name == "runs"
    assert make_plan(asked, Remarks()).config == plan.config  # the same call finds the same run


def test_what_a_file_names_is_not_run_and_must_be_the_same(folders: Path) -> None:
    file = folders / "photos.safetensors"
    equida.extract_features("photos", backbone="mixed_net:net", out=file)
    asked: dict[str, Any] = {"recipe_params": TINY, "out": str(folders / "run")}
    with pytest.raises(InputError, match="give --backbone mixed_net:net yourself"):
        make_plan(AdaptRequest(str(file), "drawings", **asked))
    with pytest.raises(InputError, match="nowhere does not exist; "):
        make_plan(AdaptRequest("nowhere", str(file), **asked))
    np.savez(folders / "rows.npz", X=np.eye(8), y=np.arange(8) % 2)
    with pytest.raises(InputError, match="does not say which network computed its features"):
        make_plan(AdaptRequest("photos", str(folders / "rows.npz"), **asked))


@pytest.mark.parametrize("given", [None, "resnet50", "resnet50.tv_in1k"])
def test_a_known_network_whose_name_has_a_dot_is_no_code(
    folders: Path, given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--backbone resnet50` is recorded as resnet50.tv_in1k, which looks like a file."""
    made = folders / "photos.safetensors"
    equida.extract_features("photos", backbone="mixed_net:net", out=made)
    with safe_open(made, "pt") as stored:
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        header = stored.metadata()["equida"].replace("mixed_net:net", "resnet50.tv_in1k")
    save_file(tensors, made, metadata={"equida": header})
    asked: list[str] = []

    def extractor(name: str, *_: object) -> None:
        asked.append(name)
        raise InputError("far enough")

    monkeypatch.setattr("equida.training.task_features.FeatureExtractor", extractor)
    with pytest.raises(InputError, match="far enough"):
        make_plan(AdaptRequest(str(made), "drawings", backbone=given, recipe_params=TINY))
    assert asked == ["resnet50.tv_in1k"]
