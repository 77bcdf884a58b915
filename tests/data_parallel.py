"""A data-parallel loop of somebody's own, in one of three gloo processes of test_global_batch.

Usage: data_parallel.py OUT RANK. Writes the gradients of every case for every way to share a batch,
and the warnings.
"""

import functools
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from equida import global_batch
from equida.alignment import joint_mmd, mmd
from equida.losses import bnm, cwsm, entropy, mcc, nsm

ROWS, WIDTH, CLASSES = 12, 7, 5
PRIOR = torch.tensor([0.4, 0.3, 0.1, 0.15, 0.05], dtype=torch.float64)
# Rows of the target in each process; the source is shared equally, but for the cases that say so.
SHARES = [(6, 6), (9, 3), (12, 0), (4, 4, 4), (7, 3, 2), (5, 0, 7)]


class Seen(NamedTuple):
    """What a process has: a network, and its share of both domains."""

    network: Callable[[Tensor], Tensor]
    source: Tensor
    labels: Tensor
    target: Tensor
    weights: Tensor


Wrap = Callable[[Callable[..., Tensor]], Callable[..., Tensor]]
Group = dist.ProcessGroup | None


def coral(source: Tensor, target: Tensor) -> Tensor:
    """A loss of the user's own, of two domains."""
    return (source.T.cov() - target.T.cov()).square().sum()


def weighted(logits: Tensor, weights: Tensor) -> Tensor:
    """A loss of the user's own, with a tensor of more than logits."""
    share = (weights[:, None] * logits.softmax(1)).sum(0) / weights.sum()
    return (share * share.log()).sum()


def line(seen: Seen, wrap: Wrap) -> Tensor:
    z_s, z_t = seen.network(seen.source), seen.network(seen.target)
    return F.cross_entropy(z_s, seen.labels) + 2.0 * wrap(nsm)(z_t)


def on_target(loss: Callable[..., Tensor], **options: Tensor) -> Callable[[Seen, Wrap], Tensor]:
    return lambda seen, wrap: wrap(loss)(seen.network(seen.target), **options)


def on_both(loss: Callable[..., Tensor]) -> Callable[[Seen, Wrap], Tensor]:
    return lambda seen, wrap: wrap(loss)(seen.network(seen.source), seen.network(seen.target))


def joint(seen: Seen, wrap: Wrap) -> Tensor:
    z_s, z_t = seen.network(seen.source), seen.network(seen.target)
    return wrap(joint_mmd)(z_s.tanh(), z_t.tanh(), z_s, z_t)


def unequal_source(seen: Seen, wrap: Wrap) -> Tensor:
    """Both terms of the batch, for shares of the source that are not of one size, either."""
    z_s = seen.network(seen.target)
    return wrap(F.cross_entropy)(z_s, seen.labels) + wrap(nsm)(z_s)


def absent(seen: Seen, wrap: Wrap) -> Tensor:
    """A process without target rows does not even ask the network."""
    z_s = seen.network(seen.source)
    z_t = seen.network(seen.target) if len(seen.target) else z_s.new_empty(0, CLASSES)
    return F.cross_entropy(z_s, seen.labels) + wrap(nsm)(z_t)


CASES: dict[str, Callable[[Seen, Wrap], Tensor]] = {
    "line": line,
    "bnm": on_target(bnm),
    "cwsm": on_target(cwsm),
    "mcc": on_target(mcc),
    "prior": on_target(nsm, prior=PRIOR),
    "mmd": on_both(mmd),
    "joint_mmd": joint,
    "coral": on_both(coral),
    "weighted": lambda seen, wrap: wrap(weighted)(seen.network(seen.target), seen.weights),
    "output": lambda seen, wrap: wrap(nsm)(SimpleNamespace(logits=seen.network(seen.target))),
    "unequal source": unequal_source,
    "absent": absent,
}


def batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(2, ROWS, WIDTH, generator=draw, dtype=torch.float64)
    weights = torch.rand(ROWS, generator=draw, dtype=torch.float64)
    return rows[0], torch.arange(ROWS) % CLASSES, 2.0 * rows[1] + 0.5, weights


def network() -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(WIDTH, 6), nn.Tanh(), nn.Linear(6, CLASSES))
    return layers.double()


def gradient(model: nn.Module, loss: Tensor) -> Tensor:
    model.zero_grad()
    loss.backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def in_one_process(case: str) -> Tensor:
    """The gradient of the whole batch, without any wrapper."""
    source, labels, target, weights = batch()
    model = network()
    return gradient(model, CASES[case](Seen(model, source, labels, target, weights), lambda f: f))


def write_gradients(file: Path, shares: tuple[int, ...], rank: int, group: Group) -> None:
    """Of every case, averaged by DistributedDataParallel."""
    model = DistributedDataParallel(network(), process_group=group)
    wrap = functools.partial(global_batch, group=group)
    found = {
        case: gradient(model, loss(seen(model, shares, rank, equal=case != "unequal source"), wrap))
        for case, loss in CASES.items()
    }
    save_file(found, file)


def seen(model: nn.Module, shares: tuple[int, ...], rank: int, equal: bool = True) -> Seen:
    source, labels, target, weights = batch()
    of_source = [ROWS // len(shares)] * len(shares) if equal else list(shares)
    return Seen(
        model,
        source.split(of_source)[rank],
        labels.split(of_source)[rank],
        target.split(shares)[rank],
        weights.split(shares)[rank],
    )


def warned(call: Callable[[], object]) -> list[tuple[str, str]]:
    """The warnings, each with the file that it points at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(str(each.message), Path(each.filename).name) for each in caught]


def refused(call: Callable[[], object]) -> list[tuple[str, str]]:
    try:
        call()
    except ValueError as error:
        return [(str(error), "")]
    return []


def main(out: Path, rank: int) -> None:
    torch.set_num_threads(1)
    store = f"file://{out / 'store'}"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=3)
    pair = dist.new_group([0, 1])
    told = {}
    for shares in SHARES:
        if rank < len(shares):
            group = None if len(shares) == 3 else pair
            file = out / f"{shares}-{rank}.safetensors"
            told[str(shares)] = warned(
                functools.partial(write_gradients, file, shares, rank, group)
            )
    model = DistributedDataParallel(network())
    own = seen(model, SHARES[-2], rank)
    told["evaluated"] = warned(lambda: nsm(model(own.target).detach()))
    told["mean over rows"] = warned(lambda: entropy(model(own.target)))
    told["local"] = warned(lambda: [line(own, lambda f: f), bnm(model(own.target))])
    save_file({"local": gradient(model, line(own, lambda f: f))}, out / f"local-{rank}.safetensors")
    told["widths"] = refused(lambda: global_batch(nsm)(torch.zeros(2, 3 + rank)))
    told["nothing"] = refused(lambda: global_batch(nsm)(logits=torch.zeros(2, 3)))
    (out / f"{rank}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
