"""Files that are written whole or not at all, locks between processes, and digests of files."""

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from equida.errors import InputError


def write_atomic(path: Path, content: str | bytes | memoryview) -> None:
    """Replace the file at `path` by one with this content.

    The content goes into a file beside it first, is forced to the disk and takes the name last, so
    that a killed process leaves the old file or the new one, never half of one.

    Args:
        path: the file; its folder must exist.
        content: bytes, or text that is written as UTF-8.

    Raises:
        InputError: the file cannot be written, for instance because the disk is full.
    """
    with open_atomic(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def open_atomic(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose content replaces the file at `path` when the block ends without an error.

    After an error nothing is left behind; after a kill, a file NAME.tmp is left that the next
    attempt overwrites.

    Raises:
        InputError: the file cannot be written.
    """
    draft = path.with_name(f"{path.name}.tmp")
    with write_errors(path.parent):
        try:
            with draft.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def write_errors(folder: Path) -> Iterator[None]:
    """Turn any OSError of the block into one line that says what to do.

    Args:
        folder: where the block writes.

    Raises:
        InputError: instead of the OSError.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = "free some space and start again" if full else "choose another folder"
        reason = error.strerror or type(error).__name__
        raise InputError(f"cannot write into {folder}: {reason}; {advice}") from error


@contextlib.contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other processes of this machine, and other threads, from working in `folder`.

    The lock is the operating system's, on the file `lock` in the folder: it ends with the process
    that holds it, however that process ends. The file stays.

    Args:
        folder: what is worked in; it is made if it does not exist.
        wait: wait until the folder is free, instead of raising an error.

    Raises:
        InputError: another process works there and `wait` is False, or the folder cannot be
            written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / "lock", thread_local=False)
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            raise InputError(
                f"another process is at work in {folder}; wait for it, or choose another folder"
            ) from None
    try:
        yield
    finally:
        lock.release()


def file_sha256(path: Path) -> str:
    """The SHA-256 of the file's bytes, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
