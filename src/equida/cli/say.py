"""What a command remarks beside its result."""

from rich.console import Console


def say(text: str) -> None:
    """A remark beside the result, which alone goes to standard output."""
    console = Console(stderr=True, soft_wrap=True, emoji=False)
    console.print(text, markup=False, highlight=False)
