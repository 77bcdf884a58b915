"""`python -m equida` is `equida`."""

import sys

from equida.cli import main

if __name__ == "__main__":
    sys.exit(main())
