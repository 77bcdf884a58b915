"""Device, precision and processes of a run: how Fabric gets them, who starts them, how they end."""

import contextlib
import functools
import importlib.util
import logging
import multiprocessing
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Union

import torch
from torch import Tensor, nn
from torch.multiprocessing.spawn import (
    ProcessExitedException,
    ProcessRaisedException,
    spawn,
)

from equida.errors import InputError
from equida.training.recipe import Precision

if TYPE_CHECKING:
    from lightning_fabric import Fabric

T = TypeVar("T")

GRACE_SECONDS = 10.0
"""How long a process may take to end before it is killed."""
LOST = re.compile("Connection (closed|reset|refused)|[Tt]imed out|[Gg]loo|Broken pipe|NCCL")
"""What torch's errors say where another process cannot be reached."""
WATCH_SECONDS = 1.0
"""How often a process looks whether its parent is still there."""

# Users need not be told that torch ends the other processes when one has failed.
logging.getLogger("torch.multiprocessing.spawn").setLevel(logging.ERROR)


class OneProcess:
    """One process on the CPU in full precision, with what a run asks Fabric for.

    Such a run needs nothing that Fabric does, and importing Fabric would take longer than all its
    other imports but torch: it imports torch's compiler and, where it is installed, torchmetrics.
    """

    device = torch.device("cpu")
    world_size = 1
    global_rank = 0
    is_global_zero = True

    def launch(self) -> None:
        """Nothing: the process is there."""

    def broadcast(self, value: T) -> T:
        """What every process gets from the first one."""
        return value

    def autocast(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


AnyFabric: TypeAlias = Union["Fabric", OneProcess]
"""Device, precision and processes of a run."""


def started_outside(processes: int, num_nodes: int = 1) -> bool:
    """Whether torchrun, srun or somebody on each machine starts the processes of a run."""
    by_srun = os.environ.get("SLURM_STEP_NUM_TASKS") == str(processes)
    return processes > 1 and (num_nodes > 1 or by_srun or "TORCHELASTIC_RUN_ID" in os.environ)


ACCELERATORS = ("auto", "cpu", "gpu", "cuda", "mps")


def check_accelerator(name: str) -> None:
    """Raise InputError where there is no such kind of device."""
    if name not in ACCELERATORS:
        raise InputError(f"accelerator is {name!r}; it must be one of {', '.join(ACCELERATORS)}")


def make_fabric(
    accelerator: str = "auto",
    devices: int | list[int] = 1,
    num_nodes: int = 1,
    *,
    precision: Precision = "32-true",
) -> AnyFabric:
    """Device, precision and processes, or an InputError that says what this machine lacks.

    Args:
        accelerator: one of `ACCELERATORS`.
        devices: how many on each machine, or which ones.
        num_nodes: machines.
        precision: as in `Recipe`.
    """
    check_accelerator(accelerator)
    count = devices if isinstance(devices, int) else len(devices)
    if count == num_nodes == 1 and precision == "32-true" and _means_cpu(accelerator):
        return OneProcess()
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment

    # Its banners would come between the lines that the user asked for. Importing it sets this too,
    # so that it comes after the import; every process makes its Fabric before anything is printed.
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    outside = started_outside(count * num_nodes, num_nodes)
    # Processes that are started here, or this one alone, must not take the ranks of a SLURM or
    # torchrun job that this process may belong to.
    own = None if outside else LightningEnvironment()
    strategy = "auto" if count * num_nodes == 1 else "ddp"
    try:
        with warnings.catch_warnings():
            # Training refuses a replaced precision itself, with a better message.
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
            f"cannot use {count} x {accelerator} with precision {precision} here: {reason}"
        ) from error


def _means_cpu(accelerator: str) -> bool:
    """Whether Fabric would choose the CPU."""
    if accelerator != "auto":
        return accelerator == "cpu"
    gpu = torch.cuda.is_available() or torch.backends.mps.is_available()
    return not gpu and importlib.util.find_spec("torch_xla") is None


def on_rank_zero(fabric: AnyFabric, what: Callable[[], T]) -> T:
    """Call the function on rank zero; its value, or its InputError, reaches every process."""
    answer: tuple[Any, str] = None, ""
    if fabric.is_global_zero:
        try:
            answer = what(), ""
        except InputError as error:
            answer = None, str(error)
    value, error_text = fabric.broadcast(answer)
    if error_text:
        raise InputError(error_text)
    return value  # type: ignore[no-any-return]


def mean_over_processes(fabric: AnyFabric, tensor: Tensor) -> Tensor:
    """The mean of a tensor over all processes; gradients do not flow through it."""
    if isinstance(fabric, OneProcess) or fabric.world_size == 1:
        return tensor
    mean: Any = fabric.all_reduce(tensor, reduce_op="mean")
    return mean  # type: ignore[no-any-return]


def prepare(
    fabric: AnyFabric, module: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Any, Any]:
    """Move both to the device; Fabric wraps them for several processes and other precisions.

    One process in plain precision needs no wrappers, which would cost a small step several percent
    of its time.
    """
    if isinstance(fabric, OneProcess) or _is_plain(fabric):
        return module.to(fabric.device), optimizer
    return fabric.setup(module, optimizer)  # type: ignore[no-any-return]


def backward(fabric: AnyFabric, loss: Tensor) -> None:
    """Add the gradient of the loss to the parameters, by Fabric where it has wrapped them."""
    if isinstance(fabric, OneProcess) or _is_plain(fabric):
        loss.backward()
    else:
        fabric.backward(loss)


def _is_plain(fabric: "Fabric") -> bool:
    return fabric.world_size == 1 and precision_of(fabric) == "32-true"


def clip_gradient(
    fabric: AnyFabric, module: nn.Module, optimizer: torch.optim.Optimizer, most: float
) -> None:
    """Scale the gradient down to a norm of at most `most`.

    One that is not finite shows in the next loss; a look here would wait for it.
    """
    if isinstance(fabric, OneProcess):
        parameters = (p for group in optimizer.param_groups for p in group["params"])
        torch.nn.utils.clip_grad_norm_(parameters, most)
    else:
        fabric.clip_gradients(module, optimizer, max_norm=most, error_if_nonfinite=False)


def precision_of(fabric: AnyFabric) -> str:
    """The precision that is used, which may be another one than was asked for."""
    return "32-true" if isinstance(fabric, OneProcess) else fabric.strategy.precision.precision


def precision_state(fabric: AnyFabric) -> dict[str, Any]:
    """The state of the loss scale; empty where nothing is scaled."""
    return {} if isinstance(fabric, OneProcess) else fabric.strategy.precision.state_dict()


def load_precision_state(fabric: AnyFabric, state: dict[str, Any]) -> None:
    """Make the loss scale what it was."""
    if not isinstance(fabric, OneProcess):
        fabric.strategy.precision.load_state_dict(state)


def processes(fabric: AnyFabric) -> dict[str, Any]:
    """The processes of a run, for its record: with others, the same config rounds differently."""
    strategy = None if isinstance(fabric, OneProcess) else fabric.strategy
    nodes = int(getattr(strategy, "num_nodes", 1))
    return {
        "devices": fabric.world_size // nodes,
        "num_nodes": nodes,
        "accelerator": fabric.device.type,
        "threads": torch.get_num_threads(),
    }


def without_exchange(
    fabric: AnyFabric, module: Any, skip: bool
) -> contextlib.AbstractContextManager[Any]:
    """Inside, backward does not exchange gradients if `skip` is set, as more will be added."""
    if not skip or isinstance(fabric, OneProcess) or fabric.world_size == 1:
        return contextlib.nullcontext()
    return fabric.no_backward_sync(module)


def spawn_ranks(work: Callable[[], object], count: int) -> None:
    """Call `work` in `count` processes with the ranks that Fabric's "ddp" expects, and wait.

    All of them have ended when this function ends, also where Ctrl-C or SIGTERM ends it.

    Raises:
        InputError: one of the processes raised it.
    """
    from lightning_fabric.plugins.environments.lightning import find_free_network_port

    complaints = multiprocessing.get_context("spawn").SimpleQueue()
    arguments = (work, count, find_free_network_port(), os.getpid(), complaints)
    others = set(multiprocessing.active_children())
    try:
        with _undisturbed():
            context: Any = spawn(_process, arguments, count, join=False)
        while not context.join():
            pass
    except (ProcessExitedException, ProcessRaisedException):
        _check_kills(context.processes)
        if complaints.empty():
            raise
        raise InputError(complaints.get()) from None
    finally:
        mine = set(multiprocessing.active_children()) - others
        for process in mine:
            process.terminate()
        for process in mine:
            process.join(GRACE_SECONDS)
            process.kill()


def _check_kills(processes: Sequence[Any]) -> None:
    """Raise InputError where one of a run's processes was killed.

    The others fail as well, because they cannot reach it: that it was killed is the cause.
    """
    codes = [process.exitcode or 0 for process in processes]
    # The ones that are left are ended by SIGTERM, or else by SIGKILL, but only after the first.
    for rank, code in enumerate(codes):
        if code == -signal.SIGKILL:
            raise InputError(
                f"process {rank} of {len(codes)} was killed; most often that is a lack of memory:"
                " use fewer --devices, a smaller --batch-size (with --accumulate) or a smaller"
                " network; the same command continues from the last checkpoint"
            )


@contextlib.contextmanager
def lost_processes() -> Iterator[None]:
    """Turn the failure to reach another process of the run into one line.

    Every exchange between processes ends: by an answer, by the other's end, or after the time that
    torch allows (half an hour).

    Raises:
        InputError: instead of torch's error.
    """
    try:
        yield
    except RuntimeError as error:
        text = " ".join(str(error).split())
        lost = isinstance(error, torch.distributed.DistError) or LOST.search(text)
        if isinstance(error, InputError) or not lost:
            raise
        raise InputError(
            "another process of the run has ended or does not answer, most often because it was"
            f" killed for lack of memory ({text[:120]}); start the same command again: it"
            " continues from the last checkpoint"
        ) from error


def _process(
    rank: int, work: Callable[[], object], count: int, port: int, parent: int, complaints: Any
) -> None:
    if os.getppid() != parent:  # it was killed while this process was starting
        os._exit(1)
    exit_with_parent(parent)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "NODE_RANK": 0}
    place |= {"LOCAL_RANK": rank, "WORLD_SIZE": count}
    os.environ.update({name: str(value) for name, value in place.items()})
    try:
        work()
    except InputError as error:
        complaints.put(str(error))
        raise SystemExit(2) from None


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Inside, processes are started completely, and in such a way that Ctrl-C does not reach them.

    A terminal sends Ctrl-C to all of its processes, but only this one has to handle it. It is kept
    back here, as SIGTERM is, until the processes are started: one that is half started would print
    a traceback.
    """
    waiting: list[int] = []
    ends = (signal.SIGINT, signal.SIGTERM)
    try:
        before = [signal.signal(number, lambda n, _: waiting.append(n)) for number in ends]
    except ValueError:  # only the main thread handles signals
        yield
        return
    # Processes that are started inherit the blocked signals, and have their own handlers.
    blocks = hasattr(signal, "pthread_sigmask")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ends[:1]) if blocks else set()
    try:
        yield
    finally:
        for number, handler in zip(ends, before, strict=True):
            signal.signal(number, handler or signal.SIG_DFL)
        if blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for arrived in waiting[:1]:
            signal.raise_signal(arrived)


@functools.lru_cache
def exit_with_parent(parent: int) -> None:
    """End this process once its parent is gone; does nothing where `parent` is not its parent.

    A killed process cannot tell its workers to stop: they would continue with work that nobody
    waits for.
    """
    if os.getppid() != parent:
        return
    if hasattr(signal, "pthread_sigmask"):  # the command line blocks it, and has it inherited
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
