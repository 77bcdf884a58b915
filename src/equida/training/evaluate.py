"""What an evaluation records: accuracies, equity, discriminability, label-free scores."""

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from equida.clustering.clusters import SMALLEST_SHARE
from equida.data import ArrayDomain
from equida.data.batches import AnyTransform, eval_batches
from equida.evaluation.predictions import DomainPredictions, InputRows
from equida.evaluation.validators import DEFAULT_VALIDATOR, VALIDATORS
from equida.models.network import evaluating
from equida.training.build import row_shape
from equida.training.objective import Objective
from equida.training.processes import AnyFabric

AGAINST_PRIOR = f"{DEFAULT_VALIDATOR} against the prior"
"""What the score of runs that aim at unequal class shares is called."""
INPUT_ROWS = 20000
"""How many rows of a domain, evenly spaced, are kept for validators that look at inputs."""
_IN_USE: weakref.WeakKeyDictionary[ArrayDomain, weakref.ref[InputRows]] = (
    weakref.WeakKeyDictionary()
)


def predict(
    objective: Objective,
    domain: Any,
    transform: AnyTransform | None,
    *,
    batch_size: int,
    workers: int = 0,
    fabric: AnyFabric | None = None,
    features: bool = False,
    inputs: InputRows | None = None,
) -> DomainPredictions:
    """The predictions for a domain; several processes share the work.

    Args:
        transform: how images are prepared; None for rows.
        workers: threads that read images ahead.
        features: keep the network's features, too.
        inputs: the domain's rows, for validators.
    """
    ranks, rank = (fabric.world_size, fabric.global_rank) if fabric else (1, 0)
    share = range(len(domain) * rank // ranks, len(domain) * (rank + 1) // ranks)
    mine = domain if ranks == 1 else domain.select(share)
    if ranks > 1:
        # Each process has seen other batches: the running statistics of rank zero count.
        for buffer in objective.buffers():
            dist.broadcast(buffer, 0)
    found: list[tuple[Tensor, ...]] = []
    example = next(objective.parameters())
    with torch.inference_mode(), evaluating(objective):
        for batch in eval_batches(mine, transform, batch_size, workers=workers):
            x = batch.x.to(example.device, example.dtype, non_blocking=True)
            kept: list[Tensor] = []

            def logits(x: Tensor, kept: list[Tensor] = kept) -> Tensor:
                computed, logits = objective.predict(x)
                if features:
                    kept.append(computed)
                return logits

            with fabric.autocast() if fabric else nullcontext():
                log_probs = log_probs_of(logits, x)
            rows = [part.float().unflatten(0, (len(x), -1)).mean(1).cpu() for part in kept]
            found.append((log_probs.cpu(), batch.labels, *rows))
    gathered = [tuple(map(torch.cat, zip(*found, strict=True)))] if found else []
    if ranks > 1:
        shares: list[Any] = [None] * ranks
        dist.all_gather_object(shares, gathered)
        gathered = [each for share in shares for each in share]
    log_probs, labels, *rest = map(torch.cat, zip(*gathered, strict=True))
    return DomainPredictions(log_probs, labels, rest[0] if rest else None, inputs)


def network_of(
    objective: Objective, domain: ArrayDomain, *, batch_size: int, fabric: AnyFabric
) -> Callable[[Tensor], Tensor]:
    """A function from rows of a domain, flattened, to log-probabilities, for validators."""
    shape, example = row_shape(domain), next(objective.parameters())
    assert shape is not None

    def log_probs(rows: Tensor) -> Tensor:
        found = []
        with torch.inference_mode(), evaluating(objective):
            for part in rows.split(batch_size):
                x = part.reshape(-1, *shape).to(example.device, example.dtype)
                with fabric.autocast():
                    found.append(log_probs_of(lambda x: objective.predict(x)[1], x).cpu())
        return torch.cat(found)

    return log_probs


def input_rows(domain: Any) -> InputRows | None:
    """The rows of a domain for validators, of large domains evenly spaced ones; None for images.

    Runs that go on at the same time share them: the run that calibrates confidences has the rows of
    the run that it is done for.
    """
    if not isinstance(domain, ArrayDomain):
        return None
    known = _IN_USE.get(domain)
    found = known() if known else None
    if found is None:
        samples = np.arange(0, len(domain), -(-len(domain) // INPUT_ROWS))
        found = InputRows(domain.rows(samples).flatten(1), torch.from_numpy(samples))
        _IN_USE[domain] = weakref.ref(found)
    return found


def log_probs_of(logits: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Log-probabilities of a batch; crops of one image, (batch, crops, ...), are averaged."""
    crops = x.shape[1] if x.ndim == 5 else 1
    log_probs = logits(x.flatten(0, 1) if crops > 1 else x).float().log_softmax(1)
    if crops > 1:
        by_image = log_probs.view(-1, crops, log_probs.shape[1])
        log_probs = by_image.logsumexp(1) - math.log(crops)
    return log_probs


def picks(history: Sequence[Mapping[str, float]], metric: str) -> dict[str, Mapping[str, float]]:
    """The evaluation that each validator would have picked, and the oracle's, by `metric`.

    The oracle looks at target labels: it says how much a perfect validator could have gained. Of
    equal scores the latest evaluation is picked.
    """
    figures = {name: name for name in VALIDATORS if all(name in one for one in history)}
    if metric in history[-1]:
        figures["oracle"] = metric
    return {
        name: max(history, key=lambda one: (one[figure], one["step"]))
        for name, figure in figures.items()
    }


def kept_figure(result: Mapping[str, Any], name: str) -> float | None:
    """A figure of the weights that a run keeps; None where it is not there or not finite.

    >>> kept_figure({"kept": "last", "last": {"step": 5.0, "snd": 0.5}}, "snd")
    0.5
    """
    kept = result["kept"]
    figures = result["last"] if kept == "last" else result["picks"].get(kept, {})
    value = figures.get(name)
    return float(value) if value is not None and math.isfinite(value) else None


def auto_score(result: Mapping[str, Any]) -> tuple[str, float | None]:
    """Name and value of the score by which `method="auto"` compares runs on the same data.

    The score is the default validator's, agreement with neighbours times balance. Where runs have a
    prior q, the balance is 1 - KL(predicted shares, q) / -log(max q), at least 0. For equal q that
    is the validator's own balance, and a run that predicts one class for everything has 0 for every
    q. A prior that came from target labels is not used. The score is None where the result does not
    have it.
    """
    aims = result.get("aims", {}).values()
    known = {tuple(aim["shares"]) for aim in aims if not aim["uses_target_labels"]}
    agreement = kept_figure(result, "knn")
    if len(known) != 1 or agreement is None:
        return DEFAULT_VALIDATOR, kept_figure(result, DEFAULT_VALIDATOR)
    prior = np.array(known.pop())
    prior = np.maximum(prior, SMALLEST_SHARE / len(prior))
    shares = np.array(result["shares"]["predicted"])
    found = shares > 0
    away = float((shares[found] * np.log(shares[found] / prior[found])).sum())
    limit = max(-math.log(min(prior.max(), 1.0)), 1e-9)
    return AGAINST_PRIOR, agreement * max(0.0, 1.0 - away / limit)
