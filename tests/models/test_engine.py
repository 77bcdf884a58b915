"""What runs a frozen network: ONNX Runtime gives PyTorch's features, and files record it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors import safe_open
from torch import Tensor, nn

import equida
from equida import plugins
from equida.cli import main
from equida.data.domain import ImageDomain
from equida.data.feature_cache import Engine, Extraction, ExtractionOptions, FeatureStore
from equida.errors import InputError
from equida.models import foreign
from equida.models.backbone import Backbone, backbone_name, load_backbone
from equida.models.engine import OnnxRuntimeEngine, engine_here, start_engine
from equida.models.extractor import FeatureExtractor
from equida.progress import Bar
from equida.torch_modes import torch_threads

onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra export")
pytest.importorskip("onnx", reason="needs the extra export")

Array = NDArray[np.float32]
TORCH = f"torch {torch.__version__}"
ONNX = f"onnxruntime {onnxruntime.__version__}"
IMAGES = torch.rand(5, 3, 20, 20, generator=torch.Generator().manual_seed(1))


class Plain(nn.Module):
    """A convolution, a norm with statistics of its own, and a mean."""

    input_size = (3, 20, 20)

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convolution, self.norm = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6)
        self.norm(self.convolution(torch.rand(8, 3, 20, 20)))

    def forward(self, images: Tensor) -> Tensor:
        pooled: Tensor = self.norm(self.convolution(images)).relu().mean((2, 3))
        return pooled


class Spectrum(Plain):
    """Holds an operator that ONNX does not have."""

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = torch.linalg.eigvalsh(images.mean(1) + images.mean(1).transpose(1, 2))
        return values


class Forgetful(Plain):
    """What it returns depends on a number that an export takes for a constant."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images) * float(images.std())


def backbone(module: nn.Module) -> Backbone:
    return load_backbone(backbone_name(module))


def test_both_engines_compute_what_the_module_does() -> None:
    module = Plain().eval()
    with torch.inference_mode():
        expected = module(IMAGES)
    wanted: Engine
    for wanted, name in (("auto", ONNX), ("onnxruntime", ONNX), ("torch", TORCH)):
        engine = start_engine(backbone(module), wanted, IMAGES, pytest.fail)
        assert engine.name == name
        for images in (IMAGES, IMAGES.to(memory_format=torch.channels_last)):
            torch.testing.assert_close(engine(images), expected, rtol=1e-4, atol=1e-6)
        assert engine(IMAGES[:1]).shape == (1, 6)


def test_large_batches_are_cut_to_what_the_cache_holds() -> None:
    module, given = Plain().eval(), []
    engine = OnnxRuntimeEngine(module, IMAGES)
    session = engine._session

    class Counted:
        def run(self, names: None, inputs: dict[str, Array]) -> list[Array]:
            given.append(len(inputs["images"]))
            found: list[Array] = session.run(names, inputs)
            return found

    engine._session = Counted()
    images = torch.rand(37, 3, 20, 20, generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        torch.testing.assert_close(engine(images), module(images), rtol=1e-4, atol=1e-6)
    assert sorted(given) == [1] + 18 * [2]


def test_features_do_not_depend_on_the_number_of_threads() -> None:
    engine = OnnxRuntimeEngine(Plain().eval(), IMAGES)
    images = torch.rand(37, 3, 20, 20, generator=torch.Generator().manual_seed(2))
    found = []
    for threads in (1, 3):
        with torch_threads(threads):
            found.append(engine(images))
    assert torch.equal(*found)


@pytest.mark.slow(reason="exports networks to ONNX")
@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (Spectrum(), "'aten::linalg_eigvalsh'"),
        (Forgetful(), "its features differ from PyTorch's by"),
    ],
)
def test_a_network_that_it_cannot_run_is_left_to_torch(
    module: nn.Module, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    engine = start_engine(backbone(module), "auto", IMAGES, said.append)
    assert engine.name == TORCH
    with torch.inference_mode():
        torch.testing.assert_close(engine(IMAGES), module.eval()(IMAGES))
    assert len(said) == 1
    assert "\n" not in said[0]
    assert reason in said[0]
    assert said[0].endswith("; PyTorch computes its features")
    with pytest.raises(InputError, match="use --engine auto or torch"):
        start_engine(backbone(module), "onnxruntime", IMAGES, pytest.fail)
    assert capfd.readouterr() == ("", "")


def test_where_it_is_missing_auto_is_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise InputError("ONNX needs onnxruntime: pip install 'equida[export]'")

    assert (engine_here(), engine_here("torch")) == (ONNX, TORCH)
    monkeypatch.setattr(foreign, "import_onnxruntime", missing)
    assert engine_here() == TORCH
    with pytest.raises(InputError, match=r"'equida\[export\]', or use --engine torch"):
        engine_here("onnxruntime")


def test_a_gpu_is_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (engine_here(), engine_here("onnxruntime")) == (TORCH, ONNX)


def test_an_onnx_file_has_its_engine() -> None:
    assert engine_here("auto", "/nets/tiny.onnx") == ONNX
    with pytest.raises(InputError, match="only onnxruntime can run"):
        engine_here("torch", "/nets/tiny.onnx")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(6):
        pixels = np.random.default_rng(number).integers(0, 256, (24, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


Extract = Callable[..., Extraction]


@pytest.fixture
def extracted(photos: Path, tmp_path: Path) -> Extract:
    """Extracts features by a timm network with weights in a file, which can be stored."""
    weights = tmp_path / "weights.pth"
    name = "resnet10t"
    torch.manual_seed(0)
    torch.save(load_backbone(name, pretrained=False).module.state_dict(), weights)

    def extract(
        file: str, engine: Engine, store: FeatureStore | None = None, **options: int
    ) -> Extraction:
        names = sorted(path.name for path in photos.iterdir())
        domain = ImageDomain(photos, names, name="photos")
        chosen = ExtractionOptions(batch_size=4, engine=engine)
        network = FeatureExtractor(name, weights, pytest.fail)
        return network.extract([domain], tmp_path / file, chosen, Bar("silent"), store)

    return extract


def recorded(file: Path) -> list[str]:
    with safe_open(file, "np") as stored:
        found: list[str] = json.loads(stored.metadata()["equida"])["engines"]
        return found


def rows(file: Path) -> Tensor:
    with safe_open(file, "pt") as stored:
        found: Tensor = stored.get_tensor("features")
        return found


@pytest.mark.slow(reason="exports a network to ONNX several times")
def test_a_file_says_which_engine_made_it_and_counts_for_every_engine(
    extracted: Extract, photos: Path, tmp_path: Path
) -> None:
    file, other = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    assert extracted("a.safetensors", "auto").engines == (ONNX,)
    assert recorded(file) == [ONNX]
    extracted("b.safetensors", "torch")
    assert recorded(other) == [TORCH]
    scale = float(rows(other).abs().max())
    torch.testing.assert_close(rows(file), rows(other), rtol=0, atol=1e-4 * scale)
    # Features of another engine are as good, unless an engine is asked for by its name.
    assert not extracted("b.safetensors", "auto").written
    assert recorded(other) == [TORCH]
    done = extracted("b.safetensors", "onnxruntime")
    assert (done.computed, recorded(other)) == (6, [ONNX])
    assert other.read_bytes() == file.read_bytes()
    # What is added by another engine is recorded beside.
    extracted("b.safetensors", "torch")
    shutil.copy(photos / "0.png", photos / "same.png")
    Image.new("RGB", (24, 24), (9, 200, 30)).save(photos / "new.png")
    done = extracted("b.safetensors", "auto")
    assert (done.computed, done.engines) == (1, (ONNX, TORCH))
    assert recorded(other) == [ONNX, TORCH]


@pytest.mark.slow(reason="exports a network to ONNX several times")
def test_the_store_has_features_of_each_engine(extracted: Extract, tmp_path: Path) -> None:
    store = FeatureStore(tmp_path / "store")
    extracted("torch.safetensors", "torch", store)
    done = extracted("any.safetensors", "auto", store)
    assert (done.computed, done.stored, done.engines) == (0, 6, (TORCH,))
    done = extracted("onnx.safetensors", "onnxruntime", store)
    assert (done.computed, done.stored, done.engines) == (6, 0, (ONNX,))
    # Where both are stored, those are taken that would be computed here.
    extracted("again.safetensors", "auto", store)
    same = [(tmp_path / f"{name}.safetensors").read_bytes() for name in ("onnx", "again")]
    assert same[0] == same[1]


@pytest.mark.slow(reason="exports a network to ONNX several times")
def test_a_call_that_was_stopped_is_not_continued_by_another_engine(
    extracted: Extract, photos: Path, tmp_path: Path
) -> None:
    (photos / "5.png").write_bytes(b"")
    with pytest.raises(InputError, match="1 of 6 images cannot be read"):
        extracted("f.safetensors", "torch")
    shutil.copytree(tmp_path / "f.safetensors.part", tmp_path / "g.safetensors.part")
    Image.new("RGB", (24, 24), (9, 200, 30)).save(photos / "5.png")
    done = extracted("f.safetensors", "onnxruntime")
    assert (done.computed, done.engines) == (6, (ONNX,))
    done = extracted("g.safetensors", "torch")
    assert (done.computed, done.engines) == (2, (TORCH,))


def test_the_flag_and_the_summary(
    photos: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "engine_nets.py").write_text(
        "from tests.models.test_engine import Forgetful, Plain"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    call = ["features", "photos", "--out", "f.safetensors", "--backbone"]
    assert main([*call, "engine_nets:Plain", "--engine", "torch"]) == 0
    assert capsys.readouterr().out.endswith(f" ({TORCH})\n")
    assert main([*call, "engine_nets:Forgetful", "--batch-size", "4"]) == 0
    printed = capsys.readouterr()
    assert printed.out.endswith(f" ({TORCH})\n")
    assert printed.err.count("\n") == 1
    assert "onnxruntime cannot run engine_nets:Forgetful" in printed.err
    assert main([*call, "engine_nets:Plain", "--engine", "tensorrt"]) == 2
    assert "onnxruntime" in capsys.readouterr().err
    plugins.permit("engine_nets:Plain")
    with pytest.raises(InputError, match="engine is 'fast'; it must be one of auto, onnxruntime"):
        equida.extract_features(photos, backbone="engine_nets:Plain", engine="fast")  # type: ignore[arg-type]
