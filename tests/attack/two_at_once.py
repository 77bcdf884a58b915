"""Two commands at once on the same output: one at least succeeds, and the other says why not."""

import time

from tests.attack import Case, Outcome, family, judge, short_run, worst
from tests.attack.run_folders import bench, runs
from tests.processes import Process, TooLong, equida


@family("two at once", quick=1, long=60)
def two_at_once(case: Case) -> Outcome:
    out = case.folder / "out"
    file = case.folder / "f.safetensors"
    tiny = ("--backbone", "tiny_backbone:net", "--batch-size", 2)
    commands: dict[str, list[object]] = {
        "features": ["features", case.data / "photos", *tiny, "--out", file],
        "adapt": [*short_run(out)],
        "adapt --features": ["adapt", "-s", case.data / "photos", "-t", case.data / "drawings",
                             *tiny, "--features", "--iterations", 4, "--out", out, "--quiet"],
        "bench": [*bench(out), "--methods", "nsm,bnm"],
        "report": ["report", runs(), "--out", case.folder / "page.html", "--maps", 0],
    }  # fmt: skip
    name = [*commands][case.number % len(commands)]
    command = equida(*commands[name])
    try:
        with Process(command, cwd=case.folder) as first:
            # Mostly close together: that is where they meet.
            time.sleep(case.random.choice([0.0, 0.0, case.random.uniform(0.0, 0.5)]))
            with Process(command, cwd=case.folder) as second:
                ends = [first.wait(), second.wait()]
    except TooLong as hang:
        return Outcome("hang", f"{name}\n{hang}")
    outcome = worst([judge(ended, (0, 2), name) for ended in ends])
    both = "\n".join(f"{ended.code}: {ended.err}" for ended in ends)
    refused = [ended.err for ended in ends if ended.code]
    if outcome.clean and (len(refused) == 2 or any("at work" not in said for said in refused)):
        return Outcome("wrong", f"{name}\n{both}")
    # What is there now is whole: the command finds nothing, or nothing wrong.
    return worst([outcome, case.command(*commands[name], codes=(0,))])
