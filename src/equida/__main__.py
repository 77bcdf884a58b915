"""`python -m equida` is `equida`."""

import os
import sys

if __name__ == "__main__":
    # `python -m` puts the current folder first, where a file could take the place of a package.
    if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]

    from equida.cli import main

    sys.exit(main())
