"""Files that are written whole or not at all, locks between processes, digests, and safe reading.

Whatever a file holds, and whatever is behind its name, reading it here ends: with its content, or
with one line that says what is wrong.
"""

import contextlib
import errno
import glob
import hashlib
import json
import logging
import os
import shutil
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from equida.errors import InputError

LOG = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0
"""How long a process waits for a folder before it says so."""


def write_atomic(path: Path, content: str | bytes | memoryview) -> None:
    """Replace the file at `path` by one with this content.

    The content goes into a file beside it first, is forced to the disk and takes the name last, so
    that a killed process leaves the old file or the new one, never half of one.

    Args:
        path: the file; its folder must exist.
        content: bytes, or text that is written as UTF-8; what is not text in it, such as a byte of
            a file name, is written as an escape sequence.

    Raises:
        InputError: the file cannot be written, for instance because the disk is full.
    """
    with open_atomic(path) as file:
        file.write(
            content.encode(errors="backslashreplace") if isinstance(content, str) else content
        )


@contextlib.contextmanager
def open_atomic(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose content replaces the file at `path` when the block ends without an error.

    Two processes that write the same file at once do not meet: the last one to end has its way.
    After an error nothing is left behind; after a kill, a file NAME.*.tmp is left that the next
    attempt removes.

    Raises:
        InputError: the file cannot be written.
    """
    draft = _draft(path)
    with write_errors(path.parent), _unfinished(draft):
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)


def _draft(path: Path) -> Path:
    """The name of a file beside `path` that is this thread's own; removes what a kill has left."""
    host = socket.gethostname()
    for old in path.parent.glob(f"{glob.escape(path.name)}.{glob.escape(host)}.*.tmp"):
        process = old.name.removesuffix(".tmp").split(".")[-2]
        if process.isdecimal() and not _is_running(int(process)):
            remove(old)
    return path.with_name(f"{path.name}.{host}.{os.getpid()}.{threading.get_native_id()}.tmp")


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):  # the number may be any that a name has
        return False
    except PermissionError:  # it is somebody else's
        pass
    return True


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder that is removed at the end of the block, also where a signal ends the command.

    Raises:
        InputError: there is no room for one.
    """
    with write_errors(Path(tempfile.gettempdir())):
        folder = Path(tempfile.mkdtemp(prefix="equida-"))
    with _unfinished(folder):
        yield folder


_UNFINISHED: set[Path] = set()


@contextlib.contextmanager
def _unfinished(path: Path) -> Iterator[None]:
    """Remove the file or folder, if it is still there, when the block ends."""
    _UNFINISHED.add(path)
    try:
        yield
    finally:
        remove(path)
        _UNFINISHED.discard(path)


def remove_unfinished() -> None:
    """Remove what is being written by now; for a process that is about to end."""
    for path in tuple(_UNFINISHED):
        remove(path)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that it holds, as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


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
        advice = write_advice(error) or "choose another folder"
        reason = error.strerror or type(error).__name__
        raise InputError(f"cannot write into {folder}: {reason}; {advice}") from error


def write_advice(error: OSError) -> str:
    """What to do where the system refuses to write; "" for any other reason."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some space and start again"
    if error.errno == errno.EFBIG:
        return "raise the limit on the size of files (ulimit -f), or choose another file system"
    return "choose another folder" if error.errno == errno.EROFS else ""


@contextlib.contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other processes of this machine, and other threads, from working in `folder`.

    The lock is the operating system's, on the file `lock` in the folder: it ends with the process
    that holds it, however that process ends. The file stays.

    Args:
        folder: what is worked in; it is made if it does not exist.
        wait: wait until the folder is free, instead of raising an error; a line says so.

    Raises:
        InputError: another process works there and `wait` is False, or the folder cannot be
            written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / "lock", thread_local=False)
    with write_errors(folder):
        try:
            _acquire(lock, folder, PATIENCE_SECONDS if wait else 0)
        except Timeout:
            if not wait:
                raise InputError(
                    f"another process is at work in {folder}; wait for it, or choose another folder"
                ) from None
            LOG.warning("waiting for another process that is at work in %s", folder)
            _acquire(lock, folder, -1)
    try:
        yield
    finally:
        lock.release()


def _acquire(lock: Any, folder: Path, timeout: float) -> None:
    for _ in range(100):
        folder.mkdir(parents=True, exist_ok=True)
        # Another process may have finished its work and removed the folder in between.
        with contextlib.suppress(FileNotFoundError):
            lock.acquire(timeout=timeout)
            return
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def remove_part(folder: Path) -> None:
    """Remove a folder that this process has locked.

    The lock is the last to go. Whoever comes in between makes the folder its own: then it stays.
    """
    for inner in folder.iterdir():
        if inner.name != "lock":
            remove(inner)
    remove(folder / "lock")
    with contextlib.suppress(OSError):
        folder.rmdir()


@contextlib.contextmanager
def removed_if_unused(folder: Path) -> Iterator[None]:
    """Where the block fails and leaves nothing but a lock in a folder that it has made, remove it.

    So that a command with a wrong path of its data leaves no empty folder behind, nor those above
    it that had to be made.
    """
    new = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
    try:
        yield
    except BaseException:
        if new and folder.is_dir() and {inner.name for inner in folder.iterdir()} <= {"lock"}:
            remove_part(folder)
            for above in new[1:]:
                with contextlib.suppress(OSError):  # somebody else has put something there
                    above.rmdir()
        raise


def check_regular(path: str | Path) -> None:
    """Refuse what is not a plain file: reading a pipe, a socket or a device may never end.

    Raises:
        InputError: it is something else, or it cannot be looked at.
    """
    if problem := why_not_a_file(path):
        raise InputError(f"{path}: {problem}; expected a file")


def refuse_to_replace(paths: Iterable[Path], ours: Callable[[], bool]) -> None:
    """Refuse to write over files that equida did not write.

    Args:
        paths: what would be written; an empty file has nothing to lose.
        ours: tells whether what is there was written by equida.

    Raises:
        InputError: something else is there.
    """
    for path in paths:
        if not os.path.exists(path):
            continue
        if problem := why_not_a_file(path):
            raise InputError(f"cannot write {path}: it is {problem}; choose another --out")
        if os.path.getsize(path) and not ours():
            raise InputError(
                f"{path} already exists and is not a file that this command may replace; choose"
                " another --out, or move it away"
            )


def json_has(path: Path, *names: str) -> bool:
    """Whether a file is a JSON object with all these names in it."""
    try:
        value = read_json(path)
    except InputError:
        return False
    return isinstance(value, dict) and all(name in value for name in names)


def why_not_a_file(path: str | Path) -> str:
    """Why `path` is not a plain file that can be read; "" where it is one."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return "a link to a file that does not exist" if os.path.islink(path) else "no such file"
    except PermissionError:
        return "no permission to read it"
    except OSError as error:
        return os.strerror(error.errno or 0).lower()
    except ValueError:  # a NUL, which no file has in its name
        return "no such file"
    if stat.S_ISREG(mode):
        return ""
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return f"{kinds.get(stat.S_IFMT(mode), 'something else')}, not a file"


def parse_json(text: str | bytes, origin: object) -> Any:
    """The value of a JSON text that anybody may have written.

    Args:
        text: the JSON.
        origin: where it comes from, for the error message.

    Raises:
        InputError: it is not JSON, it is nested too deeply, or it has a number of thousands of
            digits.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError(f"{origin} is nested too deeply; it was not written by equida") from None
    except ValueError as error:
        raise InputError(f"{origin} is damaged ({error}); remove it or make it again") from None


def read_json(path: Path) -> Any:
    """The parsed file; an InputError where it cannot be read, as for `parse_json`."""
    check_regular(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {os.strerror(error.errno or 0).lower()}") from None
    return parse_json(content, path)


def file_sha256(path: Path) -> str:
    """The SHA-256 of the file's bytes, as hexadecimal digits."""
    check_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
