"""torchvision can be imported beside any torch, and a sound installation is left alone."""

import subprocess
import sys

import pytest

from equida import torchvision_ops
from equida.errors import InputError

pytest.importorskip("PIL")


def _python(code: str) -> str:
    """What a fresh interpreter prints: operators cannot be taken back within one."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_torchvision_imports_after_it_and_the_answer_is_torchvisions_own() -> None:
    printed = _python(
        "from equida.torchvision_ops import ensure_operators as e; first, again = e(), e()\n"
        "import torchvision\n"
        "print(first == again == e() == torchvision.extension._has_ops())"
    )
    assert printed == "True"


def test_existing_operators_are_not_declared_again() -> None:
    printed = _python(
        "import torch\n"
        "mine = torch.library.Library('torchvision', 'DEF')\n"
        "for name in ('nms', 'qnms'):\n"
        "    mine.define(name + '(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')\n"
        "mine.impl('nms', lambda dets, scores, iou_threshold: scores, 'CPU')\n"
        "from equida.torchvision_ops import ensure_operators\n"
        "print(ensure_operators())\n"
        "print(torch.ops.torchvision.nms(torch.zeros(1, 4), torch.ones(1), 0.5).tolist())"
    )
    assert printed.splitlines() == ["True", "[1.0]"]


def test_without_torchvision_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'equida\[vision\]'"):
        torchvision_ops.ensure_operators()
