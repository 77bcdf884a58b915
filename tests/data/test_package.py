"""Importing the data layer stays light."""

import subprocess
import sys


def test_importing_it_needs_numpy_and_torch_only() -> None:
    code = "import sys, equida.data; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )
    heavy = {"PIL", "safetensors", "sklearn", "mlxtend", "torchvision", "timm", "rich", "tyro"}
    assert "torch" in loaded
    assert not loaded & heavy
