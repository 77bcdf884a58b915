"""Class names: when two of them are the same class, and finding them in a class list."""

import difflib
import unicodedata
from collections.abc import Sequence

from equida.errors import InputError


def composed(name: str) -> str:
    """`name` with its accents composed, as some file systems store them and others do not."""
    return unicodedata.normalize("NFC", name)


def class_key(name: str) -> str:
    """What two spellings of one class name share.

    Case, the storage of accents, forms of a letter (full width, ligatures), characters that cannot
    be seen (joiners, marks of direction) and white space at the ends do not matter. Some scripts
    need joiners to be written well, so that names themselves stay as they are.

    >>> class_key("Mug") == class_key("mug") == class_key(" \uff4d\uff55\uff47\u200b")
    True
    """
    folded = composed("".join(map(_plain_form, name))).casefold()
    seen = "".join(letter for letter in folded if not _is_invisible(letter))
    # Letters can be composed anew once nothing stands between them, and then have a case again.
    return composed(composed(seen).casefold()).strip()


def _plain_form(letter: str) -> str:
    """The letter without full or half width, and a ligature as its letters.

    Other forms mean something else: m\u00b2 is not m2, and \u2460 is not 1.
    """
    kind = unicodedata.decomposition(letter).partition(" ")[0]
    ligature = kind == "<compat>" and "LIGATURE" in unicodedata.name(letter, "")
    plain = kind in ("<wide>", "<narrow>") or ligature
    return unicodedata.normalize("NFKC", letter) if plain else letter


def _is_invisible(letter: str) -> bool:
    """Whether a character cannot be seen; tags tell the flags of England and Scotland apart."""
    return unicodedata.category(letter) == "Cf" and not "\U000e0020" <= letter <= "\U000e007f"


def check_class_names(names: Sequence[str], origin: str) -> None:
    """Refuse a class list in which two classes have the same name, or nearly the same.

    Domains are matched by class name as `class_key` compares them, so that such classes would be
    mixed up. Names without a visible character, and those with control characters, are refused too.

    Args:
        names: the class list.
        origin: where it comes from, for the error message.

    >>> check_class_names(["Mug", "pen", "mug"], "photos")
    Traceback (most recent call last):
    equida.errors.InputError: photos: classes 'Mug' and 'mug' differ only in case; merge or ...
    """
    seen: dict[str, str] = {}
    for name in names:
        key = class_key(name)
        if not key or any(unicodedata.category(letter) == "Cc" for letter in name):
            raise InputError(
                f"{origin}: class {name!r} has no visible name, or control characters in it; rename"
                " it"
            )
        if key not in seen:
            seen[key] = name
        elif seen[key] == name:
            raise InputError(f"{origin}: class {name!r} is listed twice; merge or rename one")
        else:
            raise InputError(
                f"{origin}: classes {seen[key]!r} and {name!r} differ only in"
                f" {_difference(seen[key], name)}; merge or rename one"
            )


def _difference(one: str, other: str) -> str:
    """What two names with one key differ in, in words."""
    # Before case is folded, which would take a ligature apart.
    if any(_plain_form(letter) != letter for letter in one + other):
        return "characters that look the same or cannot be seen"
    if one.casefold() == other.casefold():
        return "case"
    if composed(one).casefold() == composed(other).casefold():
        return "how their accents are stored"
    if one.strip().casefold() == other.strip().casefold():
        return "white space at their ends"
    return "characters that look the same or cannot be seen"


def match_classes(found: Sequence[str], classes: Sequence[str], origin: str) -> list[int]:
    """The index in `classes` of each name in `found`, compared as `class_key` does.

    Args:
        found: class names, each once.
        classes: the class list to look them up in.
        origin: where `found` comes from, for the error message.
    """
    check_class_names(classes, origin)
    check_class_names(found, origin)
    numbers = {class_key(name): number for number, name in enumerate(classes)}
    unknown = [name for name in found if class_key(name) not in numbers]
    if unknown:
        near = difflib.get_close_matches(unknown[0], classes, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise InputError(
            f"{origin}: {', '.join(map(repr, unknown[:5]))}{more} not among the {len(classes)}"
            f" classes{hint}; rename or remove"
        )
    return [numbers[class_key(name)] for name in found]


def numbered_classes(highest: int, origin: str) -> tuple[str, ...]:
    """The class names "0", "1", ... up to the label `highest`.

    Args:
        highest: the largest label.
        origin: where it comes from, for the error message.
    """
    if highest >= 100_000:
        raise InputError(f"{origin}: label {highest}; expected class numbers, counted from 0")
    return tuple(map(str, range(highest + 1)))
