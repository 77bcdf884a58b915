"""What an evaluation records: accuracies, equity, discriminability, label-free scores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from torch import Tensor

from equida.data.batches import AnyTransform, eval_batches
from equida.evaluation import figures
from equida.evaluation.accuracy import confusion_matrix
from equida.evaluation.figures import Evaluated
from equida.evaluation.validators import VALIDATORS
from equida.training.objective import Objective


@dataclass(frozen=True)
class DomainPredictions:
    """What the network predicts for every sample of a domain, in order."""

    log_probs: Tensor
    labels: Tensor
    """-1 where unknown."""

    def confusion(self) -> Tensor | None:
        """Counts by true and predicted class, or None without labels."""
        if not bool((self.labels >= 0).any()):
            return None
        classes = self.log_probs.shape[1]
        return confusion_matrix(self.log_probs.argmax(1), self.labels, classes)


@contextmanager
def evaluating(objective: Objective) -> Iterator[None]:
    """Put the objective into evaluation mode, and back into its former mode afterwards."""
    training = objective.training
    objective.eval()
    try:
        yield
    finally:
        objective.train(training)


def predict(
    objective: Objective,
    domain: Any,
    transform: AnyTransform | None,
    *,
    batch_size: int,
    workers: int = 0,
    fabric: Fabric | None = None,
) -> DomainPredictions:
    """The predictions for a domain; several processes share the work."""
    ranks, rank = (fabric.world_size, fabric.global_rank) if fabric else (1, 0)
    share = range(len(domain) * rank // ranks, len(domain) * (rank + 1) // ranks)
    mine = domain if ranks == 1 else domain.select(share)
    if ranks > 1:
        # Each process has seen other batches: the running statistics of rank zero count.
        for buffer in objective.buffers():
            dist.broadcast(buffer, 0)
    log_probs, labels = [], []
    example = next(objective.parameters())
    with torch.inference_mode(), evaluating(objective):
        for batch in eval_batches(mine, transform, batch_size, workers=workers):
            x = batch.x.to(example.device, example.dtype, non_blocking=True)
            with fabric.autocast() if fabric else nullcontext():
                batch_log_probs = log_probs_of(lambda batch: objective.predict(batch)[1], x)
            log_probs.append(batch_log_probs.cpu())
            labels.append(batch.labels)
    gathered = [(torch.cat(log_probs), torch.cat(labels))] if log_probs else []
    if ranks > 1:
        shares: list[Any] = [None] * ranks
        dist.all_gather_object(shares, gathered)
        gathered = [pair for pairs in shares for pair in pairs]
    return DomainPredictions(
        torch.cat([pair[0] for pair in gathered]),
        torch.cat([pair[1] for pair in gathered]),
    )


def log_probs_of(logits: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Log-probabilities of a batch; crops of one image, (batch, crops, ...), are averaged.

    Args:
        logits: the network.
        x: its inputs.
    """
    crops = x.shape[1] if x.ndim == 5 else 1
    log_probs = logits(x.flatten(0, 1) if crops > 1 else x).float().log_softmax(1)
    if crops > 1:
        log_probs = log_probs.exp().view(-1, crops, log_probs.shape[1]).mean(1).log()
    return log_probs


def measure(target: DomainPredictions, source: DomainPredictions | None) -> dict[str, float]:
    """The figures of one evaluation; those that need target labels are absent without them."""
    source_confusion = None if source is None else source.confusion()
    return figures.measure(Evaluated(target.log_probs, target.confusion(), source_confusion))


def picks(history: Sequence[Mapping[str, float]], metric: str) -> dict[str, Mapping[str, float]]:
    """The evaluation that each validator would have picked, and the oracle's, by `metric`.

    The oracle looks at target labels: it says how much a perfect validator could have gained. Of
    equal scores the latest evaluation is picked.
    """
    chosen = {
        name: max(history, key=lambda evaluated: (evaluated[name], evaluated["step"]))
        for name in VALIDATORS
        if name in history[-1]
    }
    if metric in history[-1]:
        chosen["oracle"] = max(
            history, key=lambda evaluated: (evaluated[metric], evaluated["step"])
        )
    return chosen
