"""The import directions of the house, and what importing the losses and doing a run cost."""

import ast
import subprocess
import sys
from pathlib import Path

from tests.processes import Process
from tests.small_data import write_blobs

import equida

ROOT = Path(equida.__file__).parent

# A package may import the ones it lists, itself, and the modules that everybody may use.
ALLOWED = {
    "losses": {"distributed"},
    "alignment": {"distributed"},
    "distributed": set(),
    "models": {"data"},
    "data": set(),
    "evaluation": set(),
    "clustering": {"evaluation"},
    "methods": {"losses", "alignment", "clustering"},
    "training": {
        "methods",
        "clustering",
        "losses",
        "alignment",
        "distributed",
        "models",
        "data",
        "evaluation",
    },
    "runs": {"training", "methods", "models", "data", "evaluation"},
    "experiments": {"runs", "training", "methods", "models", "data", "evaluation"},
    "estimator": {"runs", "training", "methods", "models", "data", "evaluation"},
    "scorers": {"estimator", "training", "evaluation"},
    "report": {"experiments", "runs", "training", "methods", "data", "evaluation", "paper"},
    "paper": {
        "report",
        "experiments",
        "runs",
        "training",
        "methods",
        "losses",
        "data",
        "evaluation",
    },
    "api": None,
    "cli": None,
}
# The one import that points upwards: a run draws its own page.
EXCEPTIONS = {"runs/read.py": {"report"}}
EVERYBODY = {
    "class_shares", "cluster", "dropout", "errors", "plugins", "registry", "fields", "files",
    "records", "progress", "torch_modes", "torchvision_ops", "__version__",
}  # fmt: skip


def _imported(path: Path) -> set[str]:
    """Names directly below `equida` that a module imports, also inside its functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "equida":
                names |= {f"equida.{alias.name}" for alias in node.names}
            elif node.module:
                names.add(node.module)
    return {name.split(".")[1] for name in names if name.startswith("equida.")}


def test_imports_point_one_way() -> None:
    for path in ROOT.rglob("*.py"):
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if package in {"__init__", "__main__", *EVERYBODY}:
            continue
        allowed = ALLOWED[package]
        if allowed is not None:
            name = path.relative_to(ROOT).as_posix()
            extra = EXCEPTIONS.get(name, set())
            wrong = _imported(path) - allowed - EVERYBODY - {package} - extra
            assert not wrong, f"{name} imports {sorted(wrong)}"


# Who knows the room of the paper: the house must work for those who never heard of it. The front
# door does not import it: `report.published` gives it the paper's numbers, where there are any.
PAPER = {"paper", "report/published.py", "cli/paper.py", "cli/theory.py"}


def test_few_modules_know_the_paper() -> None:
    """Of all modules: also those that everybody may use, and those that may import everything."""
    knowing = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if "paper" in _imported(path)
    }
    assert {name for name in knowing if not name.startswith("paper/")} == PAPER - {"paper"}


def test_what_everybody_may_use_knows_no_room() -> None:
    """But for the modules of its own kind; a room inside one would be a room for everybody."""
    for name in EVERYBODY - {"__version__"}:
        wrong = _imported(ROOT / f"{name}.py") - EVERYBODY
        assert not wrong, f"{name}.py imports {sorted(wrong)}"


def test_the_front_door_shows_itself_and_nothing_else() -> None:
    shown = {name for name in dir(equida) if not name.startswith("_")}
    assert shown == {
        "EquidaClassifier", "adapt", "bench", "compare", "extract_features", "global_batch",
        "load_run", "scorers", "tune",
    }  # fmt: skip
    assert "__version__" in dir(equida)
    for name in shown:
        assert callable(getattr(equida, name)) or name == "scorers"


def test_importing_the_package_imports_no_torch() -> None:
    code = "import sys, equida; dir(equida); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "sklearn", "rich", "tyro"} & set(done.stdout.split())


def test_importing_the_losses_imports_torch_and_nothing_else() -> None:
    code = "import sys, equida.losses; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )
    heavy = {
        "torchvision", "timm", "pandas", "matplotlib", "sklearn", "lightning_fabric", "lightning",
        "tyro", "rich", "safetensors", "PIL", "plotly", "optuna", "joblib", "scipy",
    }  # fmt: skip
    assert "torch" in loaded
    assert not loaded & heavy


def test_a_run_on_features_imports_little(tmp_path: Path) -> None:
    """From the command to the printed result, checkpoints and calibration included."""
    file = write_blobs(tmp_path / "toy.npz")
    flags = f"adapt -s {file}:a -t {file}:b --iterations 4 --evaluate-every 2 --batch-size 12"
    code = "import sys, equida.cli; assert not equida.cli.main(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", code, *flags.split(), "--out", str(tmp_path / "run")]
    with Process(command, limit=400) as process:
        ended = process.wait()
    assert ended.code == 0, ended.err
    assert (tmp_path / "run" / "result.json").exists()
    loaded = set(ended.out.splitlines()[-1].split())
    heavy = {
        "torch._dynamo", "torch._inductor", "torch.distributed.tensor", "torch.onnx", "sympy",
        "lightning_fabric", "torchmetrics", "torchvision", "timm", "sklearn", "pandas",
        "matplotlib", "plotly", "jinja2", "optuna", "joblib", "dask", "onnx", "onnxruntime", "PIL",
    }  # fmt: skip
    assert "torch" in loaded
    assert not loaded & heavy


def test_a_public_name_means_one_thing() -> None:
    """No function or class at the top of a module has the name of another one elsewhere.

    The modules of the command line are alike on purpose: each has its `Arguments` and its `run`.
    """
    places: dict[str, list[str]] = {}
    for file in sorted(ROOT.rglob("*.py")):
        if file.parent.name == "cli" and not file.name.startswith("_"):
            continue
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(file.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
