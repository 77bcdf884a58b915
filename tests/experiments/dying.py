"""A backbone whose construction takes its process down."""

import os


def make() -> None:
    os._exit(9)
