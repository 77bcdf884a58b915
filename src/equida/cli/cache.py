"""`equida cache`: the features that commands share, and how to get rid of them."""

from dataclasses import dataclass

from equida.cli._print import print_lines


@dataclass
class Arguments:
    """Show or clear the store of features that adapt, compare and bench share.

    It is in EQUIDA_CACHE, or where this system keeps caches, and holds at most EQUIDA_CACHE_SIZE (5
    GB by default); what has not been used for the longest time is removed first. It can be cleared
    at any time: features are computed again where they are needed.
    """

    clear: bool = False
    """Remove everything in it."""


def run(arguments: Arguments) -> int:
    """Say what the store holds, or clear it."""
    from equida.data.feature_cache import FeatureStore

    store = FeatureStore.default()
    if arguments.clear:
        print_lines(f"{store.folder}: {store.clear() / 1e6:,.1f} MB removed")
    else:
        print_lines(store.summary())
    return 0
