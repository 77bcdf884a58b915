"""What stands in for a screen: a stream that is a terminal, and a meter that only counts."""

import io


class Terminal(io.StringIO):
    """What is printed to a terminal, as text."""

    def isatty(self) -> bool:
        return True


class Silent:
    """A meter of progress that shows nothing, and knows how far each part came."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}

    def start(self, label: str, total: int) -> None:
        self.label = label
        self.totals[label] = 0

    def advance(self, count: int) -> None:
        self.totals[self.label] += count
