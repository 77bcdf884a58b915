"""IW MaxSquare: the squares of target predictions, rare ones weighted up."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses import iw_max_square
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class IWMaxSquareConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the target term against source cross-entropy; the loss has the scale
    1 / classes."""
    ratio: float = search(0.2, 0.0, 1.0, maximum=1.0)
    """Pressure towards rarely predicted classes."""


@register(
    "iw_max_square", IWMaxSquareConfig, reference="Chen et al. 2019, arXiv 1909.13589, Eq. 13"
)
class IWMaxSquare(Method):
    """Image-wise weighted maximum squares: as MaxSquare, rarely predicted classes weighted up."""

    config: IWMaxSquareConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        value = iw_max_square(target.logits, ratio=self.config.ratio)
        return {"iw_max_square": self.config.trade_off * value}
