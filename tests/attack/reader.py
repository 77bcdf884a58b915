"""Threads that read images ahead: hundreds are started and ended, and none hangs.

The interpreter changes between threads after every microsecond, which is when a lock that somebody
forgot would be held at the wrong moment.
"""

from tests.attack import Case, Outcome, family
from tests.processes import TooLong, python, run

STARTS = 40
"""How often three readers are started in a case."""

CODE = """
import sys, threading
from pathlib import Path
from random import Random

import torch

from equida.data import open_domain
from equida.data.batches import BatchStream, eval_batches
from equida.data.transforms import Transform

torch.set_num_threads(1)
random = Random(int(sys.argv[2]))
sys.setswitchinterval(1e-6)
domains = [open_domain(str(Path(sys.argv[1]) / name)) for name in ("photos", "drawings")]
transform = Transform.parse(sys.argv[3])


def one(start):
    # Three readers, which end with batches that nobody has asked for.
    workers = random.choice([1, 2, 4])
    streams = [
        BatchStream(domain, random.choice([1, 4]), transform, start, workers=workers)
        for domain in domains
    ]
    for _ in range(random.randrange(4)):
        for stream in streams:
            next(stream)
    every = eval_batches(domains[0], transform, 5, workers=workers)
    read = [len(batch.x) for batch in every] if random.random() < 0.5 else [len(next(every).x)]
    assert read in ([5, 5, 2], [5])


before = threading.active_count()
for start in range(int(sys.argv[4])):
    one(start)
assert threading.active_count() <= before, threading.enumerate()
print("read")
"""


@family("reader", quick=1, long=15)
def reader(case: Case) -> Outcome:
    from equida.data.transforms import feature_transform

    transform = feature_transform((0.5,) * 3, (0.5,) * 3, 32)
    starts = STARTS if case.number else 10
    try:
        ended = run(python(CODE, case.data, case.number, transform, starts), limit=180, code=None)
    except TooLong as hang:
        return Outcome("hang", str(hang))
    good = (ended.code, ended.out, ended.err) == (0, "read\n", "")
    return Outcome("clean" if good else "wrong", f"{ended.code}\n{ended.out}{ended.err}")
