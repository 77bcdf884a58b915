"""Two processes with DistributedDataParallel: `global_batch` lets NSM see the whole batch.

Prints how far the gradient is from the one of a single process with the same rows, with and
without it. The shares of the target are not of one size, as in the last batch of an epoch.
"""

import tempfile
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from equida import global_batch
from equida.losses import nsm

SHARES = 22, 14  # target rows of each process; each has half of the 36 source rows


def batch() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    labels = torch.arange(36) % 10
    source = 2.0 * torch.eye(10).double()[labels] + torch.randn(36, 10).double()
    return source, labels, source[torch.randperm(36)] + 0.5


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 10)).double()


def gradient(model: nn.Module, loss: Callable[[Tensor], Tensor], *data: Tensor) -> Tensor:
    """One step of a training loop up to `backward`."""
    x_s, y, x_t = data
    model.zero_grad()
    z_s, z_t = model(x_s), model(x_t)
    (F.cross_entropy(z_s, y) + 2.0 * loss(z_t)).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def work(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    source, labels, target = batch()
    share = source.chunk(2)[rank], labels.chunk(2)[rank], target.split(SHARES)[rank]
    model = DistributedDataParallel(network())
    found = {
        "nsm": gradient(model, nsm, *share),  # warns
        "global_batch(nsm)": gradient(model, global_batch(nsm), *share),
    }
    torch.save(found, f"{folder}/{rank}")
    dist.destroy_process_group()


if __name__ == "__main__":
    expected = gradient(network(), nsm, *batch())
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, args=(folder,), nprocs=2)
        for name, found in torch.load(f"{folder}/0").items():
            error = float((found - expected).abs().max() / expected.abs().max())
            print(f"{name:18} {error:.1e} of the largest entry")
