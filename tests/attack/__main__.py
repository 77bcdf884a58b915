"""`python -m tests.attack [FAMILY ...]`: many cases of each family, counted."""

import argparse
import time
from collections.abc import Mapping

from tests.attack import VERDICTS, Outcome, Verdict, attack, load_families


def main() -> int:
    families = load_families()
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many cases")
    parser.add_argument("--case", type=int, help="this case only, with what it printed")
    chosen = parser.parse_args()
    names = chosen.families or sorted(families)
    for name in names:
        if name not in families:
            parser.error(f"no family {name!r}; there are: {', '.join(sorted(families))}")
    if chosen.case is not None:
        for name in names:
            outcome = attack(name, chosen.case)
            print(f"{name} {chosen.case}: {outcome.verdict}\n{outcome.detail}")
        return 0
    print(f"{'family':<18}{'tried':>8}" + "".join(f"{verdict:>11}" for verdict in VERDICTS))
    totals = dict.fromkeys(VERDICTS, 0)
    for name in names:
        began = time.monotonic()
        counts, failures = dict.fromkeys(VERDICTS, 0), []
        for number in range(max(1, round(families[name].long * chosen.scale))):
            outcome = attack(name, number)
            counts[outcome.verdict] += 1
            totals[outcome.verdict] += 1
            if not outcome.clean:
                failures.append((number, outcome))
        print(_line(name, counts) + f"   {time.monotonic() - began:.0f} s", flush=True)
        for number, outcome in failures:
            print(_failure(name, number, outcome), flush=True)
    print(_line("all", totals))
    return 0 if sum(totals.values()) == totals["clean"] else 1


def _line(name: str, counts: Mapping[Verdict, int]) -> str:
    shown = "".join(f"{count:>11}" for count in counts.values())
    return f"{name:<18}{sum(counts.values()):>8}{shown}"


def _failure(name: str, number: int, outcome: Outcome) -> str:
    text = "\n".join(f"    {line}" for line in outcome.detail.splitlines()[-40:])
    return f"  {name} --case {number}: {outcome.verdict}\n{text}"


if __name__ == "__main__":
    raise SystemExit(main())
