"""The head trained by pytorch-adapt: its hooks in a plain loop over its own data loader."""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from benchmarks.peer_head import BATCH, OPTIMIZER, WIDTH, Rows, body, decay, discriminator, serve

# torchvision's wheel lacks its compiled operators beside a torch for CPUs, and raises on import
# unless somebody declares them.
DECLARED = torch.library.Library("torchvision", "FRAGMENT")


def declare_operators() -> None:
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            DECLARED.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def train(
    rows: Rows, steps: int, make_hook: Callable[[list[Any]], Any], *, adversarial: bool = False
) -> Any:
    """A loop over batches of both domains; the hook does the rest of the step."""
    from pytorch_adapt.datasets import (
        CombinedSourceAndTargetDataset,
        DataloaderCreator,
        SourceDataset,
        TargetDataset,
    )

    models = {"G": body(rows), "C": nn.Linear(WIDTH, rows.classes)}
    models |= {"D": discriminator()} if adversarial else {}
    optimizers = [torch.optim.SGD(model.parameters(), **OPTIMIZER) for model in models.values()]  # type: ignore[arg-type]
    schedules = [torch.optim.lr_scheduler.LambdaLR(each, decay) for each in optimizers]
    hook = make_hook(optimizers)
    both = CombinedSourceAndTargetDataset(
        SourceDataset(TensorDataset(rows.source, rows.labels)),
        TargetDataset(rows.target),
    )
    loader = DataloaderCreator(batch_size=BATCH)(train=both)["train"]
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    for batch in itertools.islice(batches, steps):
        hook({**models, **batch})
        for schedule in schedules:
            schedule.step()
    return nn.Sequential(models["G"], models["C"]).eval()


def bnm(rows: Rows, steps: int) -> Callable[[Tensor], Tensor]:
    from pytorch_adapt.hooks import BNMHook, ClassifierHook
    from pytorch_adapt.weighters import SumWeighter

    return train(  # type: ignore[no-any-return]
        rows, steps, lambda opts: ClassifierHook(opts, SumWeighter(), post=[BNMHook()])
    )


def dann(rows: Rows, steps: int) -> Callable[[Tensor], Tensor]:
    from pytorch_adapt.hooks import DANNHook
    from pytorch_adapt.weighters import SumWeighter

    halves = {"src_domain_loss": 0.5, "target_domain_loss": 0.5}
    return train(  # type: ignore[no-any-return]
        rows, steps, lambda opts: DANNHook(opts, SumWeighter(weights=halves)), adversarial=True
    )


def dan(rows: Rows, steps: int) -> Callable[[Tensor], Tensor]:
    from pytorch_adapt.hooks import AlignerHook, AlignerPlusCHook
    from pytorch_adapt.layers import MMDLoss
    from pytorch_adapt.layers.utils import get_kernel_scales
    from pytorch_adapt.weighters import SumWeighter

    def hook(opts: list[Any]) -> Any:
        scales = get_kernel_scales(low=-2, high=2, num_kernels=5)
        aligner = AlignerHook(MMDLoss(scales, mmd_type="quadratic"))
        # It takes the mean of the five kernels, and everybody else here the sum.
        weighter = SumWeighter(weights={"features_confusion_loss": 5.0})
        return AlignerPlusCHook(opts, weighter, aligner_hook=aligner, softmax=False)

    return train(rows, steps, hook)  # type: ignore[no-any-return]


if __name__ == "__main__":
    declare_operators()
    serve({"bnm": bnm, "dann": dann, "dan": dan}, "pytorch-adapt")
