"""Trains every registered method on two gloo processes; started by test_distributed.

Usage: two_processes.py [OUT]. Writes, for each case, the gradient in mid-training and the weights
after ten steps, with the gather and without it, into OUT as .safetensors files. Without OUT it
prints by how much they differ from those of one process: the figures of the README.
"""

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from equida import EquidaClassifier
from equida.data import ArrayDomain, Task, array_domain, make_task
from equida.distributed import gather, global_batch
from equida.losses import nsm
from equida.methods import METHODS, configure
from equida.models.sync_batchnorm import with_shared_statistics
from equida.training import loop, objective
from equida.training.build import Built, SeededBackbone, build_run
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.prepare import prepare_method
from equida.training.processes import prepare
from equida.training.recipe import Recipe

CLASSES, BATCH = 5, 12
State = dict[str, Tensor]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in METHODS},
    "cdan+e": ("cdan", {"entropy": True}),
    "cdan+e, randomised": ("cdan", {"entropy": True, "randomize_from": 1}),
    "cdan+nsm": ("cdan+nsm", {}),
    "nsm, normalised": ("nsm", {}),
    "cdan+nsm, normalised": ("cdan+nsm", {}),
}
"""What is trained, by name: a method and its hyper-parameters."""


class OnCPU(nn.BatchNorm1d):
    """What nn.SyncBatchNorm does on GPUs alone, by its formula: statistics of the global batch."""

    def forward(self, x: Tensor) -> Tensor:
        mean, var, count = self.running_mean, self.running_var, self.num_batches_tracked
        assert mean is not None
        assert var is not None
        assert count is not None
        if self.training:
            rows = gather(x)
            with torch.no_grad():
                count.add_(1)
                mean.lerp_(rows.mean(0), self.momentum or 0.0)
                var.lerp_(rows.var(0), self.momentum or 0.0)
            mean, var = rows.mean(0), rows.var(0, correction=0)
        return (x - mean) / (var + self.eps).sqrt() * self.weight + self.bias


def built_for(
    config: RunConfig,
    task: Task,
    fabric: Fabric,
    loaded: SeededBackbone | None = None,
    *,
    look_at_target: bool = False,
    announce: Callable[[str], None] | None = None,
) -> Built:
    """As for a GPU: several processes share the statistics of batch normalisation."""
    made = build_run(config, task, fabric)
    if fabric.world_size > 1:
        with_shared_statistics(made.objective)
        for module in made.objective.modules():
            if isinstance(module, nn.SyncBatchNorm):
                module.__class__ = OnCPU  # type: ignore[assignment]
    return made


def toy_task() -> Task:
    """Five blobs in eight dimensions, and the same ones moved."""
    random = np.random.default_rng(0)
    centres = 2.0 * random.normal(size=(CLASSES, 8))
    labels = np.arange(60) % CLASSES
    source = centres[labels] + random.normal(size=(60, 8))
    target = centres[labels] + 0.7 + random.normal(size=(60, 8))
    return make_task(
        array_domain(source, labels, name="source"), array_domain(target, labels, name="target")
    )


def config_of(case: str) -> RunConfig:
    """No dropout, and no batch normalisation but where it is shared: both look at the share of a
    process by design. No warm-up, which would take the method's terms out of the first step.
    """
    recipe = Recipe(
        iterations=10,
        batch_size=BATCH,
        learning_rate=0.01,
        warm_up=0.0,
        bottleneck=6,
        bottleneck_norm=case.endswith("normalised"),
        dropout=0.0,
        precision="64-true",
    )
    method, overrides = CASES[case]
    off = {
        f"{part}.dropout": 0.0
        for part, settings in configure(method).items()
        if hasattr(settings, "dropout")
    }
    return RunConfig(method, recipe, overrides=overrides | off)


def gradient(case: str, fabric: Fabric) -> State:
    """The gradient of one batch by every parameter, in the middle of the training."""
    config, task = config_of(case), toy_task()
    torch.manual_seed(0)
    built = built_for(config, task, fabric)
    wrapped, _ = prepare(fabric, built.objective, built.optimizer)
    size = BATCH // fabric.world_size
    share = np.arange(size) + size * fabric.global_rank
    source, target = task.source, task.target
    assert isinstance(source, ArrayDomain)
    assert isinstance(target, ArrayDomain)
    assert source.labels is not None
    labels = torch.from_numpy(source.labels[share])
    prepare_method(built, task, fabric, None, resumed=False)
    samples = torch.from_numpy(share)
    rows = source.rows(share).double(), labels, target.rows(share).double()
    terms = wrapped(*rows, 0.5, samples)
    fabric.backward(torch.stack(list(terms.values())).sum())
    parameters = built.objective.named_parameters()
    return {name: p.grad.clone() for name, p in parameters if p.grad is not None}


def weights(case: str, fabric: Fabric) -> State:
    """After ten steps."""
    vars(loop)["build_run"] = built_for
    try:
        trained = train(config_of(case), toy_task(), fabric=fabric)
    finally:
        vars(loop)["build_run"] = build_run
    return {name: value.clone() for name, value in trained.built.objective.state_dict().items()}


WHAT: dict[str, Callable[[str, Fabric], State]] = {"gradient": gradient, "weights": weights}


def difference(first: State, second: State) -> float:
    """The largest of any entry."""
    assert first.keys() == second.keys()
    return max(float((first[name] - value).abs().max()) for name, value in second.items())


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """Inside, each process sees its own share only."""
    gather = vars(objective)["gather"]
    vars(objective)["gather"] = lambda tensor: tensor
    try:
        yield
    finally:
        vars(objective)["gather"] = gather


def shared_gradient(fabric: Fabric) -> State:
    """The gradients of two gathered shares that backward gets as one tensor."""
    rows = torch.arange(4.0).view(4, 1) + 1.0
    share = rows.chunk(fabric.world_size)[fabric.global_rank]
    first, second = (share.clone().requires_grad_() for _ in range(2))
    both = gather(first) + gather(second) if fabric.world_size > 1 else first + second
    both.square().sum().backward()
    return {"first": first.grad, "second": second.grad}  # type: ignore[dict-item]


def own_loop_gradient(fabric: Fabric) -> State:
    """The gradient of NSM in somebody's own loop, averaged over processes as DDP does."""
    random = np.random.default_rng(0)
    rows = torch.from_numpy(random.normal(size=(BATCH, 7)))
    start = torch.from_numpy(random.normal(size=(7, CLASSES)))
    share = rows.chunk(fabric.world_size)[fabric.global_rank]
    gradients = {}
    for name, loss in (("global", global_batch(nsm)), ("own share", nsm)):
        weight = start.clone().requires_grad_()
        loss(share @ weight).backward()
        assert weight.grad is not None
        mean: Any = fabric.all_reduce(weight.grad, reduce_op="mean")
        gradients[name] = mean.clone()
    return gradients


def alone_among_others(fabric: Fabric) -> None:
    """An estimator is fitted on one process of a job of two."""
    if fabric.is_global_zero:
        random = np.random.default_rng(0)
        x, labels = random.normal(size=(40, 3)), np.arange(40) % 2
        EquidaClassifier(iterations=3, batch_size=8).fit(x, labels, X_target=x + 1.0)
    fabric.barrier()


def work(fabric: Fabric, out: Path) -> None:
    torch.set_num_threads(1)
    alone_among_others(fabric)
    save_file(shared_gradient(fabric), out / f"shared-{fabric.global_rank}.safetensors")
    save_file(own_loop_gradient(fabric), out / f"own-loop-{fabric.global_rank}.safetensors")
    for case in CASES:
        for what, compute in WHAT.items():
            kept = {"together": compute(case, fabric)}
            with apart():
                kept["apart"] = compute(case, fabric)
            if fabric.is_global_zero:
                for kind, state in kept.items():
                    save_file(state, out / f"{case}-{what}-{kind}.safetensors")


def figures(out: Path) -> None:
    """Print the differences from one process."""
    alone = Fabric(accelerator="cpu", devices=1, precision="64-true")
    columns = [(what, kind) for what in WHAT for kind in ("together", "apart")]
    print(" " * 20, *(f"{' '.join(column):>20}" for column in columns))
    for case in CASES:
        expected = {what: compute(case, alone) for what, compute in WHAT.items()}
        cells = [
            difference(load_file(out / f"{case}-{what}-{kind}.safetensors"), expected[what])
            for what, kind in columns
        ]
        print(f"{case:20}", *(f"{cell:20.2g}" for cell in cells))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        two = Fabric(accelerator="cpu", devices=2, strategy="ddp_spawn", precision="64-true")
        two.launch(work, folder)  # type: ignore[arg-type]
        if len(sys.argv) == 1:
            figures(folder)
