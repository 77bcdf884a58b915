"""Reading one image file, in the same way everywhere."""

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equida.errors import InputError, printable, require
from equida.files import why_not_a_file

if TYPE_CHECKING:
    from PIL import Image

EXTENSIONS = frozenset(
    (".jpg", ".jpeg", ".jfif", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
)

# First and last bytes of JPEG, PNG and GIF; the other formats have no end to look for.
_ENDS = ((b"\xff\xd8\xff", b"\xff\xd9"), (b"\x89PNG\r\n\x1a\n", b"IEND"), (b"GIF8", b"\x3b"))


_HEAD = 4096  # cameras write EXIF first; a file system reads no less at a time
_ORIENTATION = 0x0112


class UnreadableImage(InputError):
    """A file that should hold an image and does not.

    It keeps its two arguments, so that it can be sent from one process to another.

    >>> print(UnreadableImage("mug/1.jpg", "the file is empty"))
    mug/1.jpg: the file is empty
    """

    def __init__(self, path: str | Path, reason: str = "") -> None:
        super().__init__(str(path), reason)
        self.path, self.reason = str(path), reason

    def __str__(self) -> str:
        return printable(f"{self.path}: {self.reason}" if self.reason else self.path)


def is_image_name(name: str) -> bool:
    """Whether a file called `name` counts as an image."""
    return os.path.splitext(name)[1].lower() in EXTENSIONS


def read_image(path: str | Path) -> "Image.Image":
    """The decoded image in `path`, as RGB with 8 bits per channel.

    The pixels are those of `PIL.Image.open(path).convert("RGB")`, as in torchvision's folders:
    transparency is dropped, an animation gives its first frame, and the EXIF orientation is not
    applied. One thing differs: 16-bit greyscale is scaled to 8 bits instead of cut off.

    Raises:
        UnreadableImage: the file is missing, empty, cut short, damaged or not an image.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     import_pil().new("L", (8, 6), 255).save(f"{folder}/grey.png")
    ...     image = read_image(f"{folder}/grey.png")
    >>> image.size, image.getpixel((0, 0))
    ((8, 6), (255, 255, 255))
    """
    pil = import_pil()
    if problem := why_not_a_file(path):
        raise UnreadableImage(path, problem)
    try:
        with open(path, "rb") as file, pil.open(file) as image:
            return _to_rgb(image)
    except MemoryError:
        raise
    except Exception as error:  # damaged bytes make the decoders raise nearly anything
        raise UnreadableImage(path, _reason(path, error)) from None


def check_image(
    path: str | Path, *, deep: bool = False, turned: list[str] | None = None
) -> str | None:
    """The reason why `path` cannot be read, or None if it can.

    Args:
        path: the file.
        deep: decode the file. Otherwise it is decoded only where its first and last bytes are not
            those of an image: it may have another format, or something may have been appended.
        turned: the path is added to it where the file is a JPEG with an EXIF orientation, which
            `read_image` does not apply.
    """
    if problem := why_not_a_file(path):
        return problem
    head, tail = _first_and_last_bytes(path)
    whole = any(head.startswith(first) and last in tail for first, last in _ENDS)
    try:
        if deep or not whole:
            read_image(path)
    except UnreadableImage as error:
        return error.reason
    if turned is not None and _is_turned(head):
        turned.append(str(path))
    return None


def import_pil() -> Any:
    """The module `PIL.Image`, or an error that says how to install it."""
    return require("PIL.Image", "reading images needs Pillow", "equida[vision]")


def as_mode(image: "Image.Image", mode: str) -> "Image.Image":
    """The image in a mode of Pillow; one that has it already is not copied."""
    return image if image.mode == mode else image.convert(mode)


def _to_rgb(image: "Image.Image") -> "Image.Image":
    if image.mode[:1] not in ("I", "F"):
        image.load()
        image.info.pop("transparency", None)  # dropped either way, but converting would warn
        return as_mode(image, "RGB")
    pixels = np.asarray(image)
    full = 1.0 if image.mode == "F" else 65535.0
    if not (pixels.min() >= 0 and pixels.max() <= full):
        raise ValueError(
            f"greyscale from {pixels.min()} to {pixels.max()}; expected 0 to {full:g}, save it with"
            " 8 or 16 bits"
        )
    grey = np.rint(pixels * (255.0 / full)).astype(np.uint8)
    rgb: Image.Image = import_pil().fromarray(grey).convert("RGB")
    return rgb


def _first_and_last_bytes(path: str | Path) -> tuple[bytes, bytes]:
    """Of a file that can be read and has 8 bytes; decoding tells what is wrong with another."""
    try:
        with open(path, "rb", buffering=0) as file:
            head = file.read(_HEAD)
            file.seek(-8, os.SEEK_END)
            return head, file.read(8)
    except OSError:
        return b"", b""


def _is_turned(head: bytes) -> bool:
    """Whether the first bytes of a JPEG say that it is stored turned or mirrored."""
    start = head.find(b"Exif\0\0") + 6
    order = {b"II": "<", b"MM": ">"}.get(head[start : start + 2])
    if not head.startswith(_ENDS[0][0]) or start < 6 or order is None:
        return False
    try:
        (offset,) = struct.unpack_from(f"{order}I", head, start + 4)
        (count,) = struct.unpack_from(f"{order}H", head, start + offset)
        for entry in range(count):
            place = start + offset + 2 + 12 * entry
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", head, place)
            if tag == _ORIENTATION:
                return bool(2 <= value <= 8)
    except struct.error:  # the entries go on behind the first bytes
        pass
    return False


def _reason(path: str | Path, error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "no permission to read it"
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    if os.path.getsize(path) == 0:
        return "empty file (0 bytes)"
    text = " ".join(str(error).split())
    if "cannot identify image" in text:
        return "not an image, or its header is damaged"
    if "truncated" in text.lower():
        return f"cut short ({text})"
    return text or type(error).__name__
