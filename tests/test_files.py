"""Files are written whole or not at all, and two processes never work in one folder."""

import contextlib
import errno
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from equida.errors import InputError
from equida.files import (
    file_sha256,
    locked,
    open_atomic,
    read_json,
    why_not_a_file,
    write_atomic,
    write_errors,
)


@pytest.mark.parametrize("content", ["ä\n", b"\xc3\xa4\n", memoryview(b"\xc3\xa4\n")])
def test_the_content_is_written_as_it_is(tmp_path: Path, content: str | bytes | memoryview) -> None:
    write_atomic(tmp_path / "a.txt", content)
    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xa4\n"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")

    def interrupted() -> None:
        with open_atomic(file) as stream:
            stream.write(b"half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert file.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["a.txt"]


def test_the_content_is_on_the_disk_before_it_has_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seen = tmp_path / "a.txt", []
    monkeypatch.setattr(os, "fsync", lambda _: seen.append(file.exists()))
    write_atomic(file, "new")
    assert seen == [False]


def test_a_full_disk_is_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "a.txt").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    said = f"cannot write into {tmp_path}: No space left on device; free some space and start again"
    with pytest.raises(InputError) as error:
        write_atomic(tmp_path / "a.txt", "new")
    assert str(error.value) == said
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("process", ["2147483646", "99999999999999"])
def test_what_a_process_that_is_gone_has_left_is_removed(tmp_path: Path, process: str) -> None:
    (tmp_path / f"a.txt.{socket.gethostname()}.{process}.1.tmp").touch()
    (tmp_path / f"a.txt.{socket.gethostname()}.{os.getpid()}.1.tmp").touch()
    (tmp_path / f"a.txt.{socket.gethostname()}.².1.tmp").touch()
    write_atomic(tmp_path / "a.txt", "new")
    assert len(list(tmp_path.glob("a.txt.*.tmp"))) == 2


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write into .*gone: .*; choose another folder"):
        write_atomic(tmp_path / "gone" / "a.txt", "new")


def test_only_errors_of_the_system_are_translated(tmp_path: Path) -> None:
    with pytest.raises(KeyError), write_errors(tmp_path):
        raise KeyError("mine")


def test_a_folder_is_locked_for_everybody_else(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    with locked(folder):
        said = f"another process is at work in {folder}; wait for it, or choose another folder"
        with pytest.raises(InputError) as error, locked(folder):
            raise AssertionError("two at once")
        assert str(error.value) == said
    with locked(folder):
        pass


def test_waiting_ends_when_the_other_one_is_done(tmp_path: Path) -> None:
    entered, order = threading.Event(), []

    def second() -> None:
        entered.set()
        with locked(tmp_path, wait=True):
            order.append("second")

    with locked(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        assert entered.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_the_lock_of_a_killed_process_does_not_block(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from equida.files import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another process is at work"), locked(tmp_path):
            pass
        process.send_signal(signal.SIGKILL)
    with locked(tmp_path):
        pass


def test_the_digest_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert file_sha256(tmp_path / "file") == hashlib.sha256(b"abc").hexdigest()


def test_text_that_is_not_text(tmp_path: Path) -> None:
    """Names of files may hold bytes that are not UTF-8, and a record half a surrogate pair."""
    write_atomic(tmp_path / "f", "caf\udce9 \ud800")
    assert (tmp_path / "f").read_text() == "caf\\udce9 \\ud800"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"a":' * 50_000, "is nested too deeply"),
        (b"9" * 10_000, "is damaged"),
        (b"{", "is damaged"),
        (b"\xff\xfe\x00", "is damaged"),
        (b"", "is damaged"),
    ],
)
def test_json_that_anybody_may_have_written(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "f.json").write_bytes(content)
    with pytest.raises(InputError, match=said) as error:
        read_json(tmp_path / "f.json")
    assert "\n" not in str(error.value)


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(tmp_path):
        server.bind("socket")
    said = {
        "pipe": "a named pipe, not a file",
        "folder": "a folder, not a file",
        "device": "a device, not a file",
        "socket": "a socket, not a file",
        "loop": "too many levels of symbolic links",
        "gone": "no such file",
        "nul\0": "no such file",
        "long" * 100: "file name too long",
    }
    for name, problem in said.items():
        assert why_not_a_file(tmp_path / name) == problem
        with pytest.raises(InputError, match=problem):
            read_json(tmp_path / name)
        with pytest.raises(InputError, match=problem):
            file_sha256(tmp_path / name)
