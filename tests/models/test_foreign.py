"""Networks of other tools as backbones: ONNX, transformers, timm's folders, modules in memory."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import processes
from tests.small_data import write_pictures
from torch import nn

import equida
from equida import plugins
from equida.cli import main
from equida.errors import InputError
from equida.models import backbone as backbones
from equida.models.backbone import load_backbone
from equida.torchvision_ops import ensure_operators

FLAGS = ["--iterations", "2", "--batch-size", "4", "--evaluate-every", "2", "--workers", "0"]


class Tiny(nn.Module):
    input_size = (3, 32, 32)

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Conv2d(3, 6, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.layers(images).flatten(1)
        return features


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders a and b with two classes, in the working folder."""
    write_pictures(tmp_path, ("a", "b"), ("mug", "pen"), count=3)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_onnx(path: Path, *, fixed: bool = False) -> Path:
    pytest.importorskip("onnxscript", reason="needs the extra export")
    batch = None if fixed else {"images": {0: torch.export.Dim("batch", min=1, max=256)}}
    torch.onnx.export(
        Tiny().eval(), (torch.rand(4, 3, 32, 32),), str(path), dynamic_shapes=batch,
        dynamo=True, verbose=False, external_data=False,
    )  # fmt: skip
    return path


@pytest.mark.slow(reason="exports a network to ONNX")
@pytest.mark.parametrize("fixed", [False, True], ids=["any batch", "batches of 4"])
def test_an_onnx_file(tmp_path: Path, fixed: bool) -> None:
    name = str(write_onnx(tmp_path / "tiny.onnx", fixed=fixed))
    plugins.permit(name)
    loaded = load_backbone(name)
    assert (loaded.width, loaded.input_size) == (6, (3, 32, 32))
    images = torch.rand(7, 3, 32, 32)
    with torch.inference_mode():
        torch.testing.assert_close(
            loaded.module(images), Tiny().eval()(images), rtol=1e-4, atol=1e-5
        )


@pytest.mark.slow(reason="exports a network to ONNX")
def test_onnx_makes_features_and_is_not_trained(
    pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_onnx(pictures / "tiny.onnx")
    adapt = ["adapt", "-s", "a", "-t", "b", "--backbone", "tiny.onnx", *FLAGS, "--quiet"]
    assert main([*adapt, "-o", "run"]) == 2
    assert "cannot be trained; use --features" in capsys.readouterr().err
    assert main([*adapt, "-o", "run", "--features"]) == 0
    assert "IMAGES --trust" in " ".join(capsys.readouterr().out.split())
    assert main(["predict", "run", "b"]) == 0
    assert main(["export", "run", "--out", "out"]) == 2
    assert "--no-onnx" in capsys.readouterr().err
    (pictures / "broken.onnx").write_bytes(b"nothing")
    assert main([*adapt[:-1], "--backbone", "broken.onnx", "-o", "other", "--features"]) == 2
    assert "not an ONNX network" in capsys.readouterr().err


def vision_models() -> dict[str, Any]:
    """Small random models of transformers, and what their pooled output is."""
    ensure_operators()
    transformers = pytest.importorskip("transformers", reason="needs the extra transformers")
    small = {
        "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "image_size": 32, "patch_size": 8,
    }  # fmt: skip
    text = {key: small[key] for key in list(small)[:4]} | {"vocab_size": 99}
    vit, residual = transformers.ViTConfig(**small), {"embedding_size": 8, "depths": [1, 1]}
    clip = transformers.CLIPConfig(text_config=text, vision_config=small)
    return {
        "vit": (transformers.ViTModel(vit), lambda m, x: m(x).pooler_output),
        # Trained without the pooler that ViTModel has.
        "vit without pooler": (
            transformers.ViTForImageClassification(vit),
            lambda m, x: m.vit(x).last_hidden_state[:, 0],
        ),
        "resnet": (
            transformers.ResNetModel(transformers.ResNetConfig(hidden_sizes=[8, 24], **residual)),
            lambda m, x: m(x).last_hidden_state.mean((2, 3)),
        ),
        "clip": (
            transformers.CLIPModel(clip),
            lambda m, x: m.vision_model(x).pooler_output,
        ),
    }


@pytest.mark.parametrize("kind", ["vit", "vit without pooler", "resnet", "clip"])
def test_the_pooled_output_of_transformers_is_found(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(0)
    model, pooled = vision_models()[kind]
    model.eval().save_pretrained(tmp_path)
    told = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2] * 3, "size": {"height": 32}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(told))
    name = f"transformers:{tmp_path}"
    plugins.permit(name)
    loaded = load_backbone(name)
    images = torch.rand(2, 3, 32, 32)
    with torch.inference_mode():
        expected = pooled(model, images)
        torch.testing.assert_close(loaded.module(images), expected)
    assert loaded.width == expected.shape[1]
    assert (loaded.mean, loaded.std) == ((0.4, 0.5, 0.6), (0.2,) * 3)
    assert loaded.input_size == (3, 32, 32)


def test_a_transformers_model_is_trained_and_predicts(pictures: Path) -> None:
    model, _ = vision_models()["vit without pooler"]
    model.save_pretrained("vit")
    adapt = ["adapt", "-s", "a", "-t", "b", "--backbone", "transformers:vit", *FLAGS, "--quiet"]
    assert main([*adapt, "-o", "run"]) == 0
    assert equida.load_run("run").config.backbone == f"transformers:{pictures / 'vit'}"
    assert len(equida.load_run("run").predict("b", progress=False)) == 6


def test_a_folder_of_timm(tmp_path: Path) -> None:
    timm = backbones._import_timm()
    torch.manual_seed(0)
    model = timm.create_model("test_resnet", num_classes=5).eval()
    timm.models.save_for_hf(model, tmp_path / "folder", safe_serialization=True)
    name = f"local-dir:{tmp_path / 'folder'}"
    plugins.permit(name)
    loaded = load_backbone(name)
    images = torch.rand(2, *loaded.input_size)
    with torch.inference_mode():
        expected = model.forward_head(model.forward_features(images), pre_logits=True)
        torch.testing.assert_close(loaded.module(images), expected)
    assert len(loaded.weights_sha256) == 64


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hf-hub:somebody/some_network", "could not be downloaded .*no route"),
        ("transformers:somebody/network", "could not be downloaded .*no route"),
        ("local-dir:nowhere", "cannot be loaded"),
        ("object:Tiny-0123456789", r"load_run\(RUN, backbone=module\)"),
    ],
)
def test_what_cannot_be_had_is_one_line(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*_: Any, **__: Any) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", offline)
    plugins.permit(name)
    with pytest.raises(InputError, match=message) as error:
        load_backbone(name)
    assert "\n" not in str(error.value)


def test_a_module_in_memory(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = Tiny()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    options: dict[str, Any] = {
        "backbone": module, "progress": False,
        "recipe_params": {"iterations": 2, "batch_size": 4, "workers": 0},
    }  # fmt: skip
    trained = equida.adapt("a", "b", out="trained", **options)
    frozen = equida.adapt("a", "b", out="frozen", features=True, **options)
    assert all(before[name].equal(value) for name, value in module.state_dict().items())
    assert len(trained.predict("b", progress=False)) == 6
    labels = frozen.predict("b", progress=False).labels
    features = equida.extract_features("a", backbone=module, progress=False)
    assert features.x.shape == (6, 6)
    monkeypatch.setattr(backbones, "OBJECTS", {})  # as in another process
    with pytest.raises(InputError, match=r"load_run\(RUN, backbone=module\)"):
        equida.load_run("frozen", trust=True).predict("b")
    again = equida.load_run("frozen", backbone=Tiny())
    assert again.predict("b", progress=False).labels == labels
    with pytest.raises(InputError, match="other processes"):
        equida.adapt("a", "b", out="two", devices=2, **options)


def test_a_pickled_module_named_by_a_flag(pictures: Path) -> None:
    code = "from torch import nn, save; save(nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten()),"
    processes.run(processes.python(f"{code} 'net.pt')"))
    plugins.permit("net.pt")
    assert load_backbone("net.pt").width == 12
    torch.save({"weight": torch.zeros(1)}, "weights.pt")
    plugins.permit("weights.pt")
    with pytest.raises(InputError, match="holds a dict; expected a whole module"):
        load_backbone("weights.pt")
