"""What each step minimises: source cross-entropy and the method's terms, in one module."""

import torch.nn.functional as F
from torch import Tensor, nn

from equida.distributed import gather
from equida.errors import InputError
from equida.methods.base import Method, Output
from equida.models.network import Network

SOURCE_TERM = "cross_entropy"
"""The name of the source's cross-entropy among the terms of a step."""


class Objective(nn.Module):
    """The named terms of a step's loss; their sum is what backward is called on.

    Batch normalisation sees one domain at a time, source first, as in the protocol. Without a
    source, the target terms alone remain.

    Args:
        network: the network that is trained.
        method: adds its terms to source cross-entropy.
        label_smoothing: share of the source label given to all classes alike.
        warm_up: share of the training over which the method's terms are ramped up to their full
            weight, so that they sharpen what the source has taught rather than first guesses. The
            terms of a method with its own cross-entropy have their full weight at once.
    """

    processes = 1
    """How many share each batch; the terms are those of the global batch."""

    def __init__(
        self,
        network: Network,
        method: Method,
        label_smoothing: float = 0.0,
        warm_up: float = 0.0,
    ) -> None:
        super().__init__()
        self.network = network
        self.method = method
        self.label_smoothing = label_smoothing
        self.warm_up = warm_up

    def forward(
        self,
        source: Tensor | None,
        labels: Tensor | None,
        target: Tensor,
        progress: float,
        samples: Tensor | None = None,
    ) -> dict[str, Tensor]:
        if source is None or labels is None:
            output = self._output(self.network(target), samples)
            return self.method(output, output.logits.new_empty(0), output, progress)  # type: ignore[no-any-return]
        labels = self._all(labels)
        if self.method.uses_target:
            of_source, of_target = self.network.both(source, target)
            source_out, target_out = self._output(of_source), self._output(of_target, samples)
        else:
            source_out = target_out = self._output(self.network(source))
        ramp = min(1.0, progress / self.warm_up) if self.warm_up else 1.0
        terms = self.method.ramped_terms(source_out, labels, target_out, progress, ramp)
        if self.method.owns_cross_entropy:
            return terms
        if SOURCE_TERM in terms:
            raise InputError(
                f"{type(self.method).__name__}.forward returned a term {SOURCE_TERM!r}, which is"
                " the name of the source's; give it another one, or set owns_cross_entropy = True"
                " if it takes the source's place"
            )
        loss = F.cross_entropy(source_out.logits, labels, label_smoothing=self.label_smoothing)
        return {SOURCE_TERM: loss} | terms

    def _output(self, computed: tuple[Tensor, Tensor], samples: Tensor | None = None) -> Output:
        features, logits = computed
        positions = None if samples is None else self._all(samples)
        return Output(self._all(features), self._all(logits), positions)

    def _all(self, share: Tensor) -> Tensor:
        return gather(share) if self.processes > 1 else share

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features and the logits that the method predicts with, of this process's samples."""
        output = Output(*self.network(x))
        return output.features, self.method.predict(output)
