"""Batch normalisation over the batches of several processes."""

import importlib

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from equida.errors import InputError

PLAIN = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


def with_shared_statistics(module: nn.Module) -> nn.Module:
    """The module with its batch normalisation over all processes; it works on GPUs only.

    timm's layers that normalise and activate in one keep their activation, which torch's own
    conversion would drop.

    Raises:
        InputError: a layer does more than normalise, so that nobody knows how to replace it.
    """
    norms = [m for m in module.modules() if isinstance(m, _BatchNorm) and type(m) not in PLAIN]
    if not norms:
        plain: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(module)
        return plain
    layers = importlib.import_module("timm.layers")
    if foreign := {type(m).__name__ for m in norms if type(m) is not layers.BatchNormAct2d}:
        raise InputError(
            f"batch normalisation by {', '.join(sorted(foreign))} cannot be shared by several GPUs;"
            " use torch's own layers, or one GPU"
        )
    converted: nn.Module = layers.convert_sync_batchnorm(module)
    return converted
