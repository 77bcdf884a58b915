"""Code from outside the package: who may name it, where it is found, and where it came from.

What a flag or a Python argument names may be code (`my_module:Mine`). What a file names (the record
of a run, the metadata of a feature file) is data: it is neither imported nor called unless somebody
says that the file is to be trusted. So nothing is imported here that was not permitted before, and
whoever reads flags, arguments or the wish to trust a file permits the names in it.
"""

import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from equida.errors import InputError

LOG = logging.getLogger(__name__)
FILES = (".pt2", ".onnx", ".pt", ".pth")
"""Endings of files that hold a network: names that end so are those of files."""


@dataclass(frozen=True)
class Permission:
    """The code that may be run, for a process that works for this one."""

    names: frozenset[str] = frozenset()
    folders: tuple[str, ...] = ()
    """Where modules are looked for that are not installed."""
    modules: tuple[str, ...] = ()
    """Modules that were imported there, and make something known that is used by its name."""


_names: set[str] = set()
_folders: list[str] = []
_digests: dict[str, str] = {}
"""By top-level module the digest of its source when it was imported here."""


def is_code(name: str) -> bool:
    """Whether a name means code or a file with a network, rather than something that is known.

    >>> [is_code(name) for name in ("resnet50.tv_in1k", "my_module:Mine", "net.pt2", "a/b")]
    [False, True, True, True]
    """
    return not re.fullmatch(r"[\w.-]*", name) or name.lower().endswith(FILES)


def permit(*names: str | None) -> None:
    """Let the code be run that a flag or a Python argument names; other names do no harm."""
    wanted = {name for name in names if name and is_code(name)}
    _names.update(wanted)
    if wanted and os.getcwd() not in _folders:
        _folders.append(os.getcwd())


def is_permitted(name: str) -> bool:
    """Whether the name means nothing that would run code, or code that may be run."""
    return not is_code(name) or name in _names


def permission(modules: Iterable[str] = ()) -> Permission:
    """What may be run here, to be handed to a process that works for this one.

    Args:
        modules: what that process imports first.
    """
    modules = tuple(modules)
    # Workers that another call has started know only the places that there were then.
    folders = [*_folders, *filter(None, sys.path)] if _names or modules else []
    return Permission(frozenset(_names), tuple(dict.fromkeys(folders)), modules)


def grant(given: Permission) -> None:
    """Let this process run what the one that it works for may run."""
    _names.update(given.names)
    _folders.extend(folder for folder in given.folders if folder not in _folders)
    for module in given.modules:
        import_module("module", module, module)


def require_permission(kind: str, name: str) -> None:
    """Raise InputError where the name means code that nobody has permitted."""
    if not is_permitted(name):
        raise InputError(
            f"{kind} {name!r} is named by a file, and using it would run {what_runs(name)}; if you"
            " trust whoever made the file, say so: --trust (in Python, trust=True)"
        )


def what_runs(name: str) -> str:
    """What would be run for a name, in words; nothing is imported to find out."""
    if name.lower().endswith(FILES):
        return f"the network in {os.path.abspath(name)}"
    module, colon, _ = name.partition(":")
    if not colon:
        return f"the network {name}"
    file = _file_of(module.partition(".")[0])
    return f"the code of {name}" + (f" in {file}" if file else "")


def load_object(kind: str, name: str) -> Any:
    """The object that `package.module:attribute` names.

    Installed packages come first. Where none has that name, the folder is searched that was current
    when the code was named.

    Raises:
        InputError: nobody has permitted it, or it cannot be imported.
    """
    require_permission(kind, name)
    module, _, attribute = name.partition(":")
    if not re.fullmatch(r"[\w.]+:[\w.]+", name) or module.endswith(".py"):
        raise InputError(
            f"{kind} {name!r} is not understood; expected package.module:name, such as"
            " my_module:Mine for Mine in my_module.py"
        )
    found = _attribute(import_module(kind, name, module), attribute)
    if found is None:
        raise InputError(_no_attribute(kind, name, module, attribute))
    return found


def imported(name: str) -> Any:
    """The object that `package.module:attribute` names where the module is imported; or None."""
    module, _, attribute = name.partition(":")
    return _attribute(sys.modules.get(module), attribute)


def _attribute(found: Any, path: str) -> Any:
    """What an object has under a name with dots in it; None where it has nothing."""
    for part in filter(None, path.split(".")):
        found = getattr(found, part, None)
    return found


def import_module(kind: str, name: str, module: str) -> ModuleType:
    """The module, imported; the digest of its source is kept as it was then."""
    top = module.partition(".")[0]
    try:
        if top not in sys.modules:
            importlib.invalidate_caches()
            if importlib.util.find_spec(top) is None:
                # At the end, so that no file there takes the place of an installed package.
                sys.path.extend(f for f in _folders if f not in sys.path and _is_in(top, f))
        known = sys.modules.get(module)
        imported = known if known is not None else importlib.import_module(module)
    except Exception as error:  # foreign code may raise anything
        raise InputError(
            f"{kind} {name!r}: cannot import {module!r} ({_one_line(error)})"
        ) from None
    if top not in _digests:
        _digests[top] = _source_sha256(top)
    return imported


def _is_in(module: str, folder: str) -> bool:
    place = Path(folder, module)
    return place.is_dir() or place.with_suffix(".py").is_file()


def _file_of(top: str) -> str:
    """The file or folder that a module would be imported from; "" where it is not found."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return ""
    if spec is not None:
        return str(spec.origin or "")
    places = [Path(folder, top) for folder in (*_folders, os.getcwd())]
    files = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
    return next((str(file) for file in files if file.is_file()), "")


def _no_attribute(kind: str, name: str, module: str, attribute: str) -> str:
    said = f"{kind} {name!r}: {module!r} has no {attribute!r}"
    if module == "__main__":
        return f"{said}: it was defined in a notebook or a script; put it into a module of its own"
    here, there = Path(f"{module}.py").absolute(), getattr(sys.modules[module], "__file__", None)
    if here.is_file() and there and not here.samefile(there):
        return f"{said}; {there} hides {here}: give your file another name"
    return said


def _one_line(error: Exception) -> str:
    """An exception of foreign code on one line, with the place that raised it."""
    lines = str(error).strip().splitlines()
    said = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and "importlib" not in frame.filename
    ]
    return f"{said}, at {frames[-1].filename}:{frames[-1].lineno}" if frames else said


@dataclass(frozen=True)
class Plugin:
    """Code from outside that a run used. Two are equal where the same source has the same name."""

    kind: str
    """What it is used as: "method", "backbone", ..."""
    name: str
    """As a flag names it: `package.module:attribute`, or the name of an entry point."""
    sha256: str
    """Digest of the source of its top-level module or package; "" where there is no source."""
    module: str = field(default="", compare=False)
    distribution: str = field(default="", compare=False)
    """The installed package that it belongs to; "" for a file that no package installed."""
    version: str = field(default="", compare=False)
    """The version of the distribution."""

    def __str__(self) -> str:
        installed = f"{self.distribution} {self.version}, " if self.distribution else ""
        return f"{installed}source {self.sha256[:12] or 'unknown'}"


def plugin(kind: str, name: str, module: str) -> Plugin:
    """Where code that was imported came from.

    Args:
        kind: what it is used as.
        name: as a flag names it.
        module: the module that it is defined in.
    """
    top = module.partition(".")[0]
    if top not in _digests:
        _digests[top] = _source_sha256(top)
    distribution, version = _distribution(top)
    return Plugin(kind, name, _digests[top], module, distribution, version)


def check_same(expected: Iterable[Plugin]) -> None:
    """Raise InputError where code here is not what it was where somebody asked for the run.

    A process that outlives an edit of the code imports it again.
    """
    for wanted in expected:
        if not wanted.sha256 or wanted.module == "__main__":
            continue
        top = wanted.module.partition(".")[0]
        edited = _digests.get(top, wanted.sha256) != wanted.sha256
        if edited and not wanted.distribution:
            forget(top)
        import_module(wanted.kind, wanted.name, wanted.module)
        if _digests[top] != wanted.sha256:
            raise InputError(
                f"{wanted.kind} {wanted.name!r} has other code here: its source has the digest"
                f" {_digests[top][:12]}, expected {wanted.sha256[:12]}; install the same version"
                " everywhere"
            )


def forget(top: str) -> None:
    """Import a package anew when it is next asked for."""
    _digests.pop(top, None)
    for name in [name for name in sys.modules if name == top or name.startswith(f"{top}.")]:
        del sys.modules[name]


@functools.cache
def _distribution(top: str) -> tuple[str, str]:
    names = importlib.metadata.packages_distributions().get(top, [])
    return (names[0], importlib.metadata.version(names[0])) if names else ("", "")


def _source_sha256(top: str) -> str:
    """Digest of the source files of a top-level module; "" where it has none."""
    module = sys.modules.get(top)
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):
        places = list(getattr(module, "__path__", ()))  # a package without __init__.py
        files = [(Path(p), f) for p in places for f in sorted(Path(p).rglob("*.py"))]
    elif Path(file).name == "__init__.py":
        files = [(Path(file).parent, f) for f in sorted(Path(file).parent.rglob("*.py"))]
    else:
        files = [(Path(file).parent, Path(file))]
    digest = hashlib.sha256()
    for root, source in files:
        digest.update(f"{source.relative_to(root).as_posix()}\0".encode())
        digest.update(source.read_bytes())
    return digest.hexdigest() if files else ""


def class_source_sha256(made: type) -> str:
    """Digest of the source of one class, for those that no file is known of.

    Where the source is not to be had, as of a class that was made in a notebook, it is the digest
    of what its functions do and of its plain values.
    """
    try:
        return hashlib.sha256(inspect.getsource(made).encode()).hexdigest()
    except (OSError, TypeError):
        digest = hashlib.sha256()
        for name, value in sorted(vars(made).items()):
            if code := getattr(value, "__code__", None):
                digest.update(f"{name} {_code_text(code)}\n".encode())
            elif isinstance(value, str | int | float | tuple) and not name.startswith("__"):
                digest.update(f"{name} {value!r}\n".encode())
        return digest.hexdigest()


def _code_text(code: CodeType) -> str:
    """What a function does, in a text that is the same in every process."""
    constants = [_code_text(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames}"


@dataclass(frozen=True)
class Offer:
    """Something that an installed package offers by an entry point."""

    name: str
    entries: tuple[importlib.metadata.EntryPoint, ...]
    """One, unless several packages offer the same name."""

    @property
    def source(self) -> str:
        """The packages that offer it, with their versions."""
        found = [entry.dist for entry in self.entries if entry.dist is not None]
        return " and ".join(f"{package.name} {package.version}" for package in found)

    @property
    def module(self) -> str:
        return self.entries[0].module


@functools.cache
def offers(group: str) -> dict[str, Offer]:
    """What installed packages offer in a group of entry points, by name; nothing is imported."""
    found: dict[str, list[importlib.metadata.EntryPoint]] = {}
    for entry in importlib.metadata.entry_points(group=group):
        found.setdefault(entry.name, []).append(entry)
    return {name: Offer(name, tuple(entries)) for name, entries in sorted(found.items())}


def load_offer(kind: str, offer: Offer) -> Any:
    """The object that an installed package offers.

    Raises:
        InputError: it cannot be imported, or several packages offer the name.
    """
    said = f"{offer.name} of {offer.source}"
    if len(offer.entries) > 1:
        raise InputError(
            f"{kind} {offer.name!r} is offered by {offer.source}; name one of them in full:"
            f" {' or '.join(entry.value for entry in offer.entries)}"
        )
    (entry,) = offer.entries
    found = _attribute(import_module(kind, said, entry.module), entry.attr)
    if found is None:
        raise InputError(f"{kind} {said!r}: {entry.module!r} has no {entry.attr!r}")
    return found


def sound_offers(kind: str, group: str) -> Iterator[tuple[str, Any]]:
    """Everything that installed packages offer in a group; what cannot be imported is warned of."""
    for name, offer in offers(group).items():
        try:
            yield name, load_offer(kind, offer)
        except InputError as error:
            LOG.warning("left out: %s", error)


def short_name(name: str) -> str:
    """The short form of a name, for tables: `Mine` for `package.module:Mine`."""
    return name.rpartition(":")[2]


def require_importable(names: Iterable[str]) -> None:
    """Raise InputError for code that other processes cannot import."""
    for name in names:
        if name.startswith("object:"):
            raise InputError(
                f"backbone {short_name(name)!r} is a module in memory, which other processes do not"
                " have; name a function that makes it (package.module:function), or work in one"
                " process (jobs=1, devices=1)"
            )
        if name.startswith("__main__:") or "<locals>" in name:
            raise InputError(
                f"{short_name(name)!r} is defined in a notebook, a script or a function, which"
                " other processes cannot import; put it into a module of its own, such as"
                " my_methods.py, or work in one process (jobs=1, devices=1)"
            )
