"""Batches of both domains, drawn by their number and placed on the device."""

from typing import Any

import torch
from torch import Tensor

from equida.data.batches import Batch, BatchStream, derived_seed
from equida.training.config import RunConfig
from equida.training.processes import AnyFabric


class Feed:
    """Makes the streams of batches of a run, and puts batches onto the device as `dtype`."""

    def __init__(self, config: RunConfig, fabric: AnyFabric, dtype: torch.dtype) -> None:
        self.config, self.recipe, self.fabric, self.dtype = config, config.recipe, fabric, dtype
        self._streams: dict[str, tuple[Any, BatchStream]] = {}

    def stream(self, role: str, domain: Any, transform: Any, start: int) -> BatchStream:
        """This process's share of batches of a domain, from batch number `start` on.

        Its role is "source" or "target".
        """
        made = BatchStream(
            domain,
            self.recipe.batch_size,
            transform,
            # For domains of the same size, one seed would draw the same positions side by side.
            seed=derived_seed(self.config.seed, role),
            start=start,
            workers=self.recipe.workers,
            pin_memory=self.fabric.device.type == "cuda",
            rank=self.fabric.global_rank,
            world_size=self.fabric.world_size,
        )
        self._streams[role] = domain, made
        return made

    def inputs(self, source: Batch | None, target: Batch) -> tuple[Tensor | None, ...]:
        """The batches on the device, in the precision and layout of the network."""
        if source is None:
            return None, None, self._placed(target.x)
        labels = source.labels.to(self.fabric.device, non_blocking=True)
        return self._placed(source.x), labels, self._placed(target.x)

    def positions(self, batch: Batch) -> Tensor:
        """The positions of a batch's samples in their domain, on the device."""
        return batch.indices.to(self.fabric.device, non_blocking=True)

    def samples(self, number: int) -> dict[str, list[str]]:
        """By role, the identity of every sample of a global batch, given by its number."""
        return {
            role: [domain.identity(index) for index in stream.samples(number).tolist()]
            for role, (domain, stream) in self._streams.items()
        }

    def _placed(self, x: Tensor) -> Tensor:
        layout = torch.preserve_format
        if self.recipe.channels_last and x.ndim == 4:
            layout = torch.channels_last
        return x.to(self.fabric.device, self.dtype, non_blocking=True, memory_format=layout)
