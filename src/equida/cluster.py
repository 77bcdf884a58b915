"""The connection to a Dask cluster."""

import contextlib
from collections.abc import Iterator
from typing import Any

from equida.errors import InputError, require

CONNECT_SECONDS = 10.0


def dask_address(cluster: str) -> str:
    """The scheduler's address as Dask writes it.

    >>> dask_address("dask://localhost:8786")
    'tcp://localhost:8786'
    """
    scheme, _, place = cluster.partition("://")
    host, _, port = place.rpartition(":")
    if scheme != "dask" or not host or not port.isdigit():
        raise InputError(f"--cluster is {cluster!r}; expected dask://HOST:PORT")
    return f"tcp://{place}"


@contextlib.contextmanager
def dask_client(cluster: str) -> Iterator[Any]:
    """A client of the scheduler, which has workers.

    Args:
        cluster: dask://HOST:PORT.
    """
    address = dask_address(cluster)
    distributed = require("distributed", "a cluster needs Dask", "equida[cluster]")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address} ({error}); start one with: dask scheduler"
        ) from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise InputError(
                f"the scheduler at {address} has no workers; start: dask worker {address}"
            )
        yield client
