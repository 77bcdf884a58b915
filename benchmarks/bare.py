"""The loop that a person would write for one method, in plain PyTorch and well tuned.

Fused SGD, features in memory, one backward for each step. Nothing is logged, evaluated or saved.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.losses import bnm_by_matrix_norm, nsm_by_autograd
from equida.data import ArrayDomain, Domain, Task
from equida.training.recipe import Recipe

CLASSES, WIDTH = 31, 256
"""Of the network: those of Office-31, and the width of its bottleneck."""

Loss = Callable[[Tensor], Tensor]


class Pass(NamedTuple):
    """What the network says of one batch."""

    features: Tensor
    logits: Tensor


def max_square(logits: Tensor) -> Tensor:
    return -logits.softmax(1).square().sum() / len(logits)


def cwsm(logits: Tensor) -> Tensor:
    probs = logits.softmax(1)
    return -(probs.square().sum(0) / probs.sum(0).sqrt()).mean()


LOSSES: dict[str, tuple[float, Loss]] = {
    "max_square": (1.0 / CLASSES, max_square),
    "bnm": (1.0, bnm_by_matrix_norm),
    "cwsm": (1.0, cwsm),
    "nsm": (2.0, nsm_by_autograd),
}
"""What is minimised on target logits, and its weight."""


class Reversed(torch.autograd.Function):
    """The identity, with the gradient times minus a factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient * -ctx.factor, None


def reverse(x: Tensor, factor: float) -> Tensor:
    reversed_: Tensor = Reversed.apply(x, factor)  # type: ignore[no-untyped-call]
    return reversed_


def adversary(progress: float) -> float:
    """How strong the gradient is that comes back from a discriminator."""
    return float(2.0 / (1.0 + np.exp(-10.0 * progress)) - 1.0)


class Head(nn.Module):
    """A method with more than a loss on target logits; returns what cross-entropy is added to.

    Args:
        classifier: the network's, which some methods use again.
    """

    owns_cross_entropy = False

    def __init__(self, classifier: nn.Linear) -> None:
        super().__init__()
        self._classifier = (classifier,)

    @property
    def classifier(self) -> nn.Linear:
        return self._classifier[0]

    def forward(
        self, source: Pass, labels: Tensor, target: Pass, progress: float, ramp: float
    ) -> Tensor:
        raise NotImplementedError


def discriminator(inputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, 1024), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(1024, 1024), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(1024, 1), nn.Flatten(0),
    )  # fmt: skip


class DANN(Head):
    def __init__(self, classifier: nn.Linear) -> None:
        super().__init__(classifier)
        self.discriminator = discriminator(WIDTH)

    def forward(
        self, source: Pass, labels: Tensor, target: Pass, progress: float, ramp: float
    ) -> Tensor:
        both = torch.cat([source.features, target.features])
        logits = self.discriminator(reverse(both, adversary(progress)))
        domains = (torch.arange(len(both)) < len(source.features)).float()
        return ramp * F.binary_cross_entropy_with_logits(logits, domains)


class CDAN(Head):
    """With the randomised map, which the authors use from 4096 products on."""

    by_feature: Tensor
    by_class: Tensor

    def __init__(self, classifier: nn.Linear) -> None:
        super().__init__(classifier)
        self.discriminator = discriminator(1024)
        self.register_buffer("by_feature", torch.randn(WIDTH, 1024))
        self.register_buffer("by_class", torch.randn(CLASSES, 1024))

    def forward(
        self, source: Pass, labels: Tensor, target: Pass, progress: float, ramp: float
    ) -> Tensor:
        features = reverse(torch.cat([source.features, target.features]), adversary(progress))
        probs = torch.cat([source.logits, target.logits]).detach().softmax(1)
        joint = (features @ self.by_feature) * (probs @ self.by_class) / 32.0
        domains = (torch.arange(len(joint)) < len(source.features)).float()
        logits = self.discriminator(joint)
        return ramp * F.binary_cross_entropy_with_logits(logits, domains)


class MCD(Head):
    def __init__(self, classifier: nn.Linear) -> None:
        super().__init__(classifier)
        self.second = nn.Linear(WIDTH, CLASSES)

    def forward(
        self, source: Pass, labels: Tensor, target: Pass, progress: float, ramp: float
    ) -> Tensor:
        supervised = F.cross_entropy(self.second(source.features), labels)
        reversed_ = reverse(target.features, 1.0)
        apart = self.classifier(reversed_).softmax(1) - self.second(reversed_).softmax(1)
        means = [z.softmax(1).mean(0) for z in (target.logits, self.second(target.features))]
        balance = -sum((mean + 1e-6).log().mean() for mean in means)
        adapted: Tensor = 0.01 * balance - CLASSES / 3 * apart.abs().mean()
        return supervised + ramp * adapted


class SymNets(Head):
    owns_cross_entropy = True

    def __init__(self, classifier: nn.Linear) -> None:
        super().__init__(classifier)
        self.of_source = nn.Linear(WIDTH, CLASSES)

    def both(self, features: Tensor, *, frozen: bool) -> Tensor:
        heads = [(each.weight, each.bias) for each in (self.of_source, self.classifier)]
        weight, bias = (torch.cat(parts) for parts in zip(*heads, strict=True))
        if frozen:
            weight, bias = weight.detach(), bias.detach()
        return F.linear(features, weight, bias)

    def forward(
        self, source: Pass, labels: Tensor, target: Pass, progress: float, ramp: float
    ) -> Tensor:
        s, t = (self.both(x.features.detach(), frozen=False) for x in (source, target))
        value = F.cross_entropy(s[:, :CLASSES], labels) + F.cross_entropy(s[:, CLASSES:], labels)
        value = value - self.halves(s)[0].mean() - self.halves(t)[1].mean()
        s, t = (self.both(x.features, frozen=True) for x in (source, target))
        category = F.cross_entropy(s, labels) + F.cross_entropy(s, labels + CLASSES)
        first, second = self.halves(t)
        by_class = t.log_softmax(1).reshape(-1, 2, CLASSES).logsumexp(1)
        entropy = -(by_class.exp() * by_class).sum(1).mean()
        confusion = entropy - 0.5 * (first + second).mean()
        return value + 0.5 * category + adversary(progress) * confusion

    @staticmethod
    def halves(logits: Tensor) -> tuple[Tensor, Tensor]:
        halves = logits.log_softmax(1).reshape(len(logits), 2, -1).logsumexp(2)
        return halves[:, 0], halves[:, 1]


class JAN(Head):
    def forward(
        self, source: Pass, labels: Tensor, target: Pass, progress: float, ramp: float
    ) -> Tensor:
        features = torch.cat([source.features, target.features])
        probs = torch.cat([source.logits, target.logits]).softmax(1)
        squared = self.distances(features)
        mean = squared.detach().mean()
        by_features = torch.stack([torch.exp(-squared / (2**k * mean)) for k in range(-2, 3)])
        kernel = by_features.sum(0) * torch.exp(-self.distances(probs) / (2 * 0.92**2))
        n = len(source.features)
        within = [
            block.sum() - block.diagonal().sum() for block in (kernel[:n, :n], kernel[n:, n:])
        ]
        return ramp * (sum(within) / (n * (n - 1)) - 2.0 * kernel[:n, n:].mean())

    @staticmethod
    def distances(x: Tensor) -> Tensor:
        squares = x.square().sum(1)
        return squares[:, None] + squares - 2.0 * x @ x.T


class DAN(Head):
    def forward(
        self, source: Pass, labels: Tensor, target: Pass, progress: float, ramp: float
    ) -> Tensor:
        squared = JAN.distances(torch.cat([source.features, target.features]))
        mean = squared.detach().mean()
        kernel = torch.stack([torch.exp(-squared / (2**k * mean)) for k in range(-2, 3)]).sum(0)
        n = len(source.features)
        within = [
            block.sum() - block.diagonal().sum() for block in (kernel[:n, :n], kernel[n:, n:])
        ]
        return ramp * (sum(within) / (n * (n - 1)) - 2.0 * kernel[:n, n:].mean())


HEADS: dict[str, type[Head]] = {
    "dan": DAN, "dann": DANN, "cdan": CDAN, "mcd": MCD, "symnets": SymNets, "jan": JAN,
}  # fmt: skip


def bare(
    task: Task,
    recipe: Recipe,
    weight: float,
    loss: Loss | None,
    head: type[Head] | None = None,
    *,
    tuned: bool = True,
) -> Iterator[nn.Module]:
    """Trains by one method, and gives the network after each step.

    Args:
        task: the data.
        recipe: batch size, steps and warm-up; the rest is what `Recipe` has by default.
        weight: of the loss.
        loss: on target logits; without it and without a head, source only.
        head: a method with heads of its own.
        tuned: False for the loop that is written first: SGD as it comes, and batches by torch's
            `DataLoader`.
    """
    source, target = (rows(domain) for domain in (task.source, task.target))
    body = nn.Sequential(
        nn.Linear(source.shape[1], WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Dropout(0.5)
    )
    classifier = nn.Linear(WIDTH, len(task.classes))
    network = nn.Sequential(body, classifier)
    method = head(classifier) if head else None
    modules = (network, method) if method else (network,)
    optimizer = torch.optim.SGD(
        [parameter for module in modules for parameter in module.parameters()],
        lr=0.01,
        momentum=0.9,
        nesterov=True,
        weight_decay=1e-3,
        fused=tuned or None,
    )
    labels = torch.from_numpy(task.source.labels)
    batches = drawn if tuned else loaded
    sources, targets = (batches(x, recipe.batch_size) for x in ((source, labels), (target,)))

    def passed(x: Tensor) -> Pass:
        features = body(x)
        return Pass(features, classifier(features))

    for step in range(recipe.iterations):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * (1 + 0.001 * step) ** -0.75
        progress = step / recipe.iterations
        ramp = min(1.0, progress / recipe.warm_up)
        x, known = next(sources)
        of_source = passed(x)
        value: Any = 0.0
        if method is None or not method.owns_cross_entropy:
            value = F.cross_entropy(of_source.logits, known)
        if loss is not None:
            value = value + weight * ramp * loss(passed(*next(targets)).logits)
        if method is not None:
            of_target = passed(*next(targets))
            value = value + method(of_source, known, of_target, progress, ramp)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield network


def rows(domain: Domain) -> Tensor:
    assert isinstance(domain, ArrayDomain)
    return torch.from_numpy(np.asarray(domain.values)).float()


def shuffled(samples: int, batch: int) -> Iterator[Tensor]:
    while True:
        order = torch.randperm(samples)
        yield from order[: samples // batch * batch].view(-1, batch)


def drawn(tensors: Sequence[Tensor], batch: int) -> Iterator[Sequence[Tensor]]:
    """Batches of the same rows of all tensors."""
    for chosen in shuffled(len(tensors[0]), batch):
        yield [tensor[chosen] for tensor in tensors]


def loaded(tensors: Sequence[Tensor], batch: int) -> Iterator[Sequence[Tensor]]:
    """The same by torch's `DataLoader`."""
    while True:
        yield from DataLoader(TensorDataset(*tensors), batch, shuffle=True, drop_last=True)
