"""What a killed run needs to continue as if nothing had happened."""

import json
from typing import Any

import torch
from torch import Tensor

from equida.errors import InputError, counted
from equida.files import parse_json
from equida.training.build import Built
from equida.training.config import RunConfig
from equida.training.processes import AnyFabric, load_precision_state, precision_state


def capture(built: Built, fabric: AnyFabric) -> dict[str, Any]:
    """Weights, running statistics, optimiser, loss scale and random generators.

    The sampler needs nothing but the number of steps: a batch is a function of its number.
    """
    return {
        "config": json.dumps(built.config.to_json()),
        "objective": built.objective.state_dict(),
        "optimizer": built.optimizer.state_dict(),
        "precision": precision_state(fabric),
        "rng": _generators(fabric),
    }


def config_of(state: dict[str, Any]) -> RunConfig:
    """The config of the run that a checkpoint belongs to, also one of an earlier version."""
    return RunConfig.from_json(parse_json(state["config"], "the config of the checkpoint"))


def restore_state(state: dict[str, Any], built: Built, fabric: AnyFabric) -> None:
    """Make everything what it was when `state` was captured.

    Raises:
        InputError: there are more or fewer processes than then, so that their shares of a batch
            and their random numbers would differ.
    """
    if len(state["rng"]) != fabric.world_size:
        begun = counted(len(state["rng"]), "process", "processes")
        raise InputError(
            f"the unfinished run was started on {begun}, not on {fabric.world_size}; continue with"
            f" --devices {len(state['rng'])}, or choose another folder"
        )
    built.objective.load_state_dict(state["objective"])
    built.optimizer.load_state_dict(state["optimizer"])
    load_precision_state(fabric, state["precision"])
    mine = state["rng"][fabric.global_rank]
    torch.set_rng_state(mine["cpu"])
    if "cuda" in mine:
        torch.cuda.set_rng_state(mine["cuda"], fabric.device)


def _generators(fabric: AnyFabric) -> list[dict[str, Tensor]]:
    """The random generators of every process, so that dropout continues where it was."""
    state = {"cpu": torch.get_rng_state()}
    if fabric.device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(fabric.device)
    if fabric.world_size == 1:
        return [state]
    states: list[Any] = [None] * fabric.world_size
    torch.distributed.all_gather_object(states, state)
    return states
