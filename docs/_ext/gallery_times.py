"""The processor time of each page of the gallery; a page that takes more than a minute is an error.

Time on the clock depends on what else the machine does, so that a limit on it would fail by chance.
Pages that have not changed are not run again; their times are kept from the build that ran them.
"""

import json
import os
from pathlib import Path
from typing import Any

from joblib.externals.loky import get_reusable_executor
from sphinx.application import Sphinx
from sphinx.util import logging

LIMIT = 60.0
"""Seconds of processor time, of the page and of the processes that it starts."""
_started: dict[str, float] = {}
_taken: dict[str, float] = {}


def processor_time() -> float:
    """Of this process and of those that it has started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def stopwatch(gallery_conf: dict[str, Any], file: str | None, when: str) -> None:
    """What sphinx-gallery calls before and after each page (`reset_modules`)."""
    if file is None:  # the gallery itself begins
        return
    page = Path(file).stem
    if when == "before":
        _started[page] = processor_time()
    else:
        # The time of worker processes counts once they have ended.
        get_reusable_executor(reuse=True).shutdown(wait=True)
        _taken[page] = processor_time() - _started.pop(page)


def check(app: Sphinx) -> None:
    """Keep the times with those of earlier builds, and warn of pages that take too long."""
    file = Path(app.srcdir) / "_generated" / "gallery_times.json"
    pages = {path.stem for path in (Path(app.srcdir) / "gallery").glob("*.py")}
    kept = json.loads(file.read_text()) if file.exists() else {}
    times = {page: seconds for page, seconds in (kept | _taken).items() if page in pages}
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(times, indent=1, sort_keys=True) + "\n")
    logger = logging.getLogger(__name__)
    for page, seconds in sorted(times.items(), key=lambda item: -item[1]):
        logger.info("gallery: %s took %.0f s of processor time", page, seconds)
        if seconds > LIMIT:
            logger.warning(
                "gallery/%s.py took %.0f s of processor time; a page may take %.0f",
                page, seconds, LIMIT,
            )  # fmt: skip


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", check)  # after the gallery, which conf.py names before this
    return {"parallel_read_safe": True, "parallel_write_safe": True}
