"""Device, precision and processes of a run, as Fabric takes them, and who starts the processes."""

import os
import warnings

from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment

from equida.errors import InputError
from equida.training.recipe import Precision


def started_outside(processes: int, num_nodes: int = 1) -> bool:
    """Whether the processes of a run are started by others: on each machine, by torchrun or srun.

    Args:
        processes: of the run, on all machines.
        num_nodes: how many machines.
    """
    by_srun = os.environ.get("SLURM_STEP_NUM_TASKS") == str(processes)
    return processes > 1 and (num_nodes > 1 or by_srun or "TORCHELASTIC_RUN_ID" in os.environ)


def make_fabric(
    accelerator: str = "auto",
    devices: int | list[int] = 1,
    num_nodes: int = 1,
    *,
    precision: Precision = "32-true",
) -> Fabric:
    """Device, precision and processes, or an InputError that says what this machine lacks.

    Args:
        accelerator: "cpu", "gpu", "mps" or "auto".
        devices: how many on each machine, or which ones.
        num_nodes: machines.
        precision: as in `Recipe`.
    """
    count = devices if isinstance(devices, int) else len(devices)
    outside = started_outside(count * num_nodes, num_nodes)
    # Processes that are started here, or this one alone, have nothing to do with the numbers of a
    # SLURM job or of torchrun that it may be part of.
    own = None if outside else LightningEnvironment()
    strategy = "auto" if count * num_nodes == 1 else "ddp"
    try:
        with warnings.catch_warnings():
            # Where a precision is replaced by another, training refuses, and says it better.
            warnings.filterwarnings("ignore", "You passed .*precision")
            return Fabric(
                accelerator=accelerator,
                devices=devices,
                num_nodes=num_nodes,
                strategy=strategy,
                precision=precision,
                plugins=own,
            )
    except Exception as error:  # Fabric raises types of its own
        reason = " ".join(str(error).split())
        raise InputError(
            f"{count} x {accelerator} at precision {precision} is not possible here: {reason}"
        ) from error
