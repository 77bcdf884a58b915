"""NSM: every two target samples that may share a class cost."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses import nsm
from equida.losses.closed_form import Scale
from equida.methods.aiming import AimingMethod, prior_field, strength_field
from equida.methods.base import Output, register, search


@dataclass(frozen=True)
class NSMConfig:
    trade_off: float = search(2.0, 0.5, 2.5)
    """Weight of the target term against source cross-entropy (the paper's lambda)."""
    r: float = search(0.5, 0.0, 1.0, maximum=1.0)
    """Pressure towards equal class sizes."""
    alpha: float = search(1.0, 1.0, 2.5, minimum=1e-3)
    """Larger values flatten the gradient near the minimum."""
    eps: float | None = search(None, 0.0, 1e-5, maximum=1.0)
    """Weight of the squares alone; None is 1e-6 where a batch has fewer rows than classes,
    else 0."""
    normalize: Scale = "transfer"
    """The scale of the loss: "transfer" (the paper's at batches of 36, and at others one in which
    trade_off carries over), "paper", or "optimum", in which the minimum is about -1."""
    prior: str = prior_field()
    prior_strength: float = strength_field(0.5)


@register(
    "nsm",
    NSMConfig,
    reference="Zhang et al. 2022, arXiv 2204.05596, Eq. 27",
    presets={"office_home": {"trade_off": 1.0, "alpha": 2.0, "eps": 1e-6}},
)
class NSM(AimingMethod):
    """Normalized squares maximization: confident target predictions, even over the classes."""

    config: NSMConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        config = self.config
        value = nsm(
            target.logits, config.r, config.alpha, config.eps, self.shares, config.normalize
        )
        return {"nsm": config.trade_off * value}
