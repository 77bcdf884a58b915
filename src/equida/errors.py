"""The one exception for things a user can put right."""


class InputError(ValueError):
    """Bad input: one line that names the thing, the value seen, the value expected, what to do.

    The command line prints it without a traceback and exits with code 2.
    """
