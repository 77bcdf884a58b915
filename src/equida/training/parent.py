"""Worker processes that do not outlive whoever started them."""

import functools
import os
import threading
import time

SECONDS = 1.0


@functools.lru_cache
def end_with(parent: int) -> None:
    """End this process once its parent, the process `parent`, is gone; nothing for another one's.

    A killed process cannot tell its workers to stop: they would go on with what nobody waits for.
    """
    if os.getppid() != parent:
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
