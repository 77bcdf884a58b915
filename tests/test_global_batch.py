"""A data-parallel loop of one's own has the gradient of one process, however a batch is shared."""

import json
import pickle
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from tests.processes import run_together

import equida
from equida import distributed
from equida.alignment import mmd
from equida.losses import bnm, closed_form, cwsm, entropy, nsm

SCRIPT = Path(__file__).with_name("data_parallel.py")
sys.path.insert(0, str(SCRIPT.parent))
from data_parallel import CASES, SHARES, in_one_process  # noqa: E402


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three processes, of which two make a group of their own for batches shared by two."""
    out = tmp_path_factory.mktemp("processes")
    for each in run_together([[sys.executable, SCRIPT, out, str(rank)] for rank in range(3)]):
        assert each.code == 0, each.err
    return out


@pytest.mark.parametrize("shares", SHARES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_n_processes_have_the_gradient_of_one(
    case: str, shares: tuple[int, ...], processes: Path
) -> None:
    expected = in_one_process(case)
    assert expected.abs().max() > 1e-3
    for rank in range(len(shares)):
        found = load_file(processes / f"{shares}-{rank}.safetensors")[case]
        assert float((found - expected).abs().max()) < 1e-12
        assert json.loads((processes / f"{rank}.json").read_text())[str(shares)] == []


def test_the_share_of_a_process_has_another_and_is_warned_of_once(processes: Path) -> None:
    for rank, rows in enumerate((7, 3, 2)):
        local = load_file(processes / f"local-{rank}.safetensors")["local"]
        assert float((local - in_one_process("line")).abs().max()) > 1e-3
        told = json.loads((processes / f"{rank}.json").read_text())
        assert told["evaluated"] == told["mean over rows"] == []
        ((message, file),) = told["local"]
        assert f"the {rows} rows of one of 3 processes" in message
        assert "from equida import global_batch" in message
        assert file == SCRIPT.name


def test_every_process_says_what_is_wrong(processes: Path) -> None:
    """Rather than hang, or abort in the backend."""
    for rank in range(3):
        told = json.loads((processes / f"{rank}.json").read_text())
        assert told["widths"][0][0].startswith("argument 0 has 3, 4, 5 values in a row in the proc")
        assert told["nothing"][0][0].endswith("nothing to gather; pass the logits by position")


@pytest.fixture
def one_of_two() -> Iterator[None]:
    """This process is the first of a group of two; what the other would send is left out."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("one_of_two", "fresh")
def test_our_own_loop_is_not_warned_of() -> None:
    """An estimator that is fitted in one process of a larger job has the whole batch."""
    rows, labels = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = equida.EquidaClassifier("cdan+nsm", iterations=2, batch_size=8)
        model.fit(rows, labels, X_target=rows + 1.0)


@pytest.mark.slow(reason="compiles a loss")
@pytest.mark.usefixtures("one_of_two", "fresh")
def test_a_compiled_loss_is_one_graph_in_several_processes() -> None:
    logits = torch.randn(6, 5, requires_grad=True)
    compiled = torch.compile(nsm, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(logits), nsm(logits.detach()))
    with pytest.warns(UserWarning, match="one of 2 processes"):
        nsm(logits)
    assert torch.vmap(torch.func.grad(nsm))(torch.randn(2, 6, 5)).shape == (2, 6, 5)


def test_in_one_process_the_loss_is_called_as_it_is() -> None:
    logits = torch.randn(6, 4, dtype=torch.float64)
    wrapped = equida.global_batch(nsm)
    assert torch.equal(wrapped(logits, r=0.3), nsm(logits, r=0.3))
    assert wrapped.__doc__ == nsm.__doc__
    assert repr(wrapped) == "global_batch(nsm)"
    assert torch.equal(pickle.loads(pickle.dumps(wrapped))(logits), nsm(logits))
    compiled = torch.compile(wrapped, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(logits), nsm(logits))


def test_what_would_not_be_gathered_is_refused() -> None:
    """A keyword is passed as it is, which would be silently wrong for features."""
    source, target = torch.randn(2, 6, 4, requires_grad=True)
    with pytest.raises(ValueError, match="loss is 'nsm'; it must be a function of logits"):
        equida.global_batch("nsm")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"target is passed by keyword.*pass it by position"):
        equida.global_batch(mmd)(source, target=target)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: nothing has been called, and nothing was said."""
    monkeypatch.setattr(closed_form, "_calls", iter(range(1, 1000)))
    monkeypatch.setattr(closed_form, "_told", set())
    monkeypatch.setattr(distributed, "_told", set())


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_probabilities_are_warned_of_once(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    probs = torch.randn(6, 65).softmax(1).to(dtype)
    with pytest.warns(UserWarning, match="look like probabilities") as caught:
        nsm(probs)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for loss in (nsm, bnm, cwsm, entropy):
            loss(probs)


@pytest.mark.usefixtures("fresh")
def test_probabilities_are_found_later_too() -> None:
    """Somebody uses one loss rightly, and another one wrongly afterwards."""
    logits = torch.randn(6, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            nsm(logits)
    with pytest.warns(UserWarning, match="look like probabilities"):
        [entropy(logits.softmax(1)) for _ in range(20)]


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    "logits",
    [
        torch.randn(6, 5),
        torch.rand(6, 5),
        torch.randn(6, 5).softmax(1) * 2,
        torch.randn(6, 5).log_softmax(1),
        torch.ones(6, 1),
        torch.tensor([[0.2, 0.8], [1.2, -0.2]]),
        torch.tensor([[0.2, float("nan")], [0.5, 0.5]]),
        torch.full((2, 2), 0.5, device="meta"),
    ],
    ids=["normal", "uniform", "scaled", "logarithms", "one class", "outside", "nan", "meta"],
)
def test_what_is_no_probability_is_not_warned_of(logits: torch.Tensor) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nsm(logits)


@pytest.mark.usefixtures("fresh")
def test_looking_disturbs_no_transformation() -> None:
    """Values cannot be asked for under vmap, grad, compile, make_fx and fake tensors."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    probs = torch.randn(3, 6, 5).softmax(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        torch.vmap(torch.func.grad(nsm))(probs)
        torch.compile(nsm, fullgraph=True, backend="aot_eager")(probs[0])
        make_fx(lambda logits: nsm(logits))(probs[0])
        with FakeTensorMode():
            nsm(torch.full((6, 5), 0.2))


def test_objects_with_logits() -> None:
    logits = torch.randn(6, 5)
    output = SimpleNamespace(loss=None, logits=logits)
    for loss in (nsm, bnm, cwsm, entropy):
        assert torch.equal(loss(output), loss(logits))
    with pytest.raises(ValueError, match="logits are a list; they must be a tensor, or have one"):
        nsm([[1.0, 2.0]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="logits are a SimpleNamespace"):
        nsm(SimpleNamespace(logits=None))


@pytest.fixture
def one_process() -> Iterator[None]:
    """This process is a group of its own."""
    store = dist.HashStore()  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("one_process")
def test_a_gradient_of_a_gathered_gradient_is_refused() -> None:
    """Before: half of it, without a word."""
    logits = torch.randn(4, 3, requires_grad=True)
    (first,) = torch.autograd.grad(
        distributed.gather(logits).square().sum(), logits, create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.square().sum().backward()


@pytest.mark.usefixtures("one_process")
def test_a_type_that_cannot_be_gathered_is_named() -> None:
    """Before: `tuple.index(x): x not in tuple`."""
    with pytest.raises(ValueError, match=r"argument 0 is torch\.uint16; expected one of"):
        distributed._gather_all([torch.zeros(2, dtype=torch.uint16)], None)
