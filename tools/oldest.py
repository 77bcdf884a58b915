"""Print the lowest version of every dependency that pyproject.toml promises, as constraints.

`make test-oldest` installs these and runs the suite. A package whose lowest version does not work
gets a higher one in pyproject.toml.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def lowest(requirements: list[str]) -> dict[str, str]:
    """The lower bound of each requirement by the name of its package.

    >>> lowest(["numpy>=1.26", "torch>=2.6,<3", "equida[vision]"])
    {'numpy': '1.26', 'torch': '2.6'}
    """
    found = {}
    for requirement in requirements:
        match = re.fullmatch(
            r"([\w.-]+)(?:\[[^]]*\])?\s*>=\s*([\w.]+).*", requirement.split(";")[0]
        )
        if match:
            found[match[1]] = match[2]
    return found


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    # The tools of developers are not promised to anybody in old versions.
    wanted = [
        *project["dependencies"],
        *(r for name in extras if name not in {"dev", "docs"} for r in extras[name]),
    ]
    kept = set(sys.argv[1:])
    versions = lowest(wanted)
    # A test trains in Lightning's loop, and Lightning needs a Fabric of its own version.
    versions["pytorch-lightning"] = versions["lightning-fabric"]
    for name, version in versions.items():
        if name not in kept:
            print(f"{name}=={version}")


if __name__ == "__main__":
    main()
