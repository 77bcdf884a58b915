"""`python -m benchmarks [NAME ...]`: run the named benchmarks, or all of them.

What follows a single name and is no name is given to that benchmark:
`python -m benchmarks validators FILE`. Last comes a table of all that has a bar or a floor.
"""

import importlib
import pkgutil
import sys
import traceback

from rich.console import Console

import benchmarks
from benchmarks.bars import FOUND, summary
from equida.errors import InputError

SUPPORT = {
    "__main__", "bare", "bars", "peer_head", "peer_loops", "peer_pytorch_adapt", "peer_skada",
    "rows", "timing",
}  # fmt: skip


def main(names: list[str]) -> int:
    known = sorted({module.name for module in pkgutil.iter_modules(benchmarks.__path__)} - SUPPORT)
    if names and names[0] in known and names[1:] and names[1] not in known:
        module = importlib.import_module(f"benchmarks.{names[0]}")
        if {"-h", "--help"} & set(names) and not hasattr(module, "argparse"):
            print(module.__doc__)
            return 0
        try:
            module.run(*names[1:])
        except InputError as error:
            print(error)
            return 2
        return 0
    unknown = set(names) - set(known)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
        return 2
    failed = []
    for name in names or known:
        print(f"== {name}")
        try:
            importlib.import_module(f"benchmarks.{name}").run()
        except Exception:  # the others can still be measured
            traceback.print_exc()
            failed.append(name)
    if FOUND:
        Console(width=120).print(summary())
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
