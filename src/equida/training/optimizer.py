"""The optimiser of the protocol: SGD with a faster head and the inverse-power schedule."""

import inspect
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.optim.sgd import sgd as update

from equida.errors import InputError
from equida.training.recipe import Recipe


def freeze(backbone: nn.Module, what: str) -> None:
    """Freeze backbone parameters: all of them, or those whose names start with given prefixes."""
    if not what:
        return
    parts = [part.strip() for part in what.split(",")]
    prefixes = ("",) if what == "all" else tuple(part for part in parts if part)
    if not prefixes:
        raise InputError(f"freeze is {what!r}; expected all, or prefixes of parameter names")
    for prefix in prefixes:
        names = [name for name, _ in backbone.named_parameters() if name.startswith(prefix)]
        if not names and what != "all":
            known = sorted({name.split(".")[0] for name, _ in backbone.named_parameters()})
            there = f"the first parts are {', '.join(known)}" if known else "there is no backbone"
            raise InputError(
                f"freeze names {prefix!r}, but no backbone parameter's name starts with it; {there}"
            )
        for name, parameter in backbone.named_parameters():
            if name.startswith(prefix):
                parameter.requires_grad_(False)


class LeanSGD(torch.optim.SGD):
    """torch's SGD without its hooks, which nobody uses here.

    They and what serves profilers and compilers take longer than the update of a small head does.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        assert closure is None, "the loop computes the gradient itself"
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            states = [self.state[p] for p in parameters] if group["momentum"] else []
            buffers: list[Tensor | None] = [state.get("momentum_buffer") for state in states]
            if any(state for state in states):  # torch starts all of them together, or none
                buffers = [
                    torch.zeros_like(p) if buffer is None else buffer
                    for p, buffer in zip(parameters, buffers, strict=True)
                ]
            update(
                parameters,
                [p.grad for p in parameters],
                buffers,
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                lr=group["lr"],
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
                fused=group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
            )
            for state, buffer in zip(states, buffers, strict=True):
                state["momentum_buffer"] = buffer

    step.hooked = True  # type: ignore[attr-defined]  # torch wraps a step without this mark

    # torch marks these so that its compiler leaves them alone; the mark imports the compiler, which
    # takes a second, and nobody compiles them here.
    add_param_group = inspect.unwrap(torch.optim.SGD.add_param_group)
    state_dict = inspect.unwrap(torch.optim.SGD.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.SGD.load_state_dict)

    def zero_grad(self, set_to_none: bool = True) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None


def sgd(backbone: nn.Module, heads: Iterable[nn.Module], recipe: Recipe) -> torch.optim.SGD:
    """SGD over the trainable parameters; the heads learn faster than the backbone."""
    slow = [p for p in backbone.parameters() if p.requires_grad]
    fast = [p for head in heads for p in head.parameters() if p.requires_grad]
    if not slow and not fast:
        raise InputError("nothing is left to train: every parameter is frozen; freeze less of it")
    groups = [{"params": slow, "multiplier": 1.0}] if slow else []
    groups += [{"params": fast, "multiplier": recipe.head_multiplier}] if fast else []
    return LeanSGD(
        groups,
        lr=recipe.learning_rate,
        momentum=recipe.momentum,
        nesterov=recipe.momentum > 0,
        weight_decay=recipe.weight_decay,
        # The fused step of fp16 unscales the gradients itself: too late for clipping, which must
        # see unscaled gradients.
        fused=not (recipe.clip and recipe.precision == "16-mixed"),
    )


def schedule(optimizer: torch.optim.Optimizer, recipe: Recipe, step: int) -> None:
    """Set the learning rates of a step: lr (1 + gamma step)^-power, times each group's factor."""
    rate = recipe.learning_rate * (1.0 + recipe.gamma * step) ** -recipe.power
    for group in optimizer.param_groups:
        group["lr"] = rate * group["multiplier"]
