"""Flags that several verbs have, with their help; nothing is imported for them but tyro."""

from typing import Annotated, Literal

import tyro

ClassesFlag = Annotated[
    Literal["shared", "source"],
    tyro.conf.arg(
        help="Where the domains have different classes: those that both have (shared), or the"
        " source's, for targets that have only some of them. Samples of other classes are left out"
        " and counted."
    ),
]
NoCacheFlag = Annotated[
    bool,
    tyro.conf.arg(
        help="Neither use nor keep features in the store that commands share (equida cache)."
    ),
]
SkipFlag = Annotated[
    bool, tyro.conf.arg(help="Leave out images that cannot be read instead of stopping.")
]
ListsFlag = Annotated[
    str,
    tyro.conf.arg(
        help="Folder of the image lists of a benchmark that chooses its samples by lists"
        " (office_home_rsut); by default they are looked for in --data and beside it."
    ),
]
SourceSharesFlag = Annotated[
    str,
    tyro.conf.arg(
        help="Cut the source's classes down: long-tail:30 (sizes fall by 30), classes:15, or a file"
        " with a class and its share on each line; long-tail:30:7 does it with seed 7."
    ),
]
SelectFlag = Annotated[
    str,
    tyro.conf.arg(
        help="Which step of a run the table shows: last, oracle (uses target labels), or a"
        " validator."
    ),
]
SeedsFlag = Annotated[str, tyro.conf.arg(help="How many seeds, or a list of them: 0,1,7.")]
FormatFlag = Annotated[
    Literal["rich", "md", "tex", "csv", "json"], tyro.conf.arg(help="How the table is printed.")
]
JobsFlag = Annotated[
    int,
    tyro.conf.arg(aliases=["-j"], help="Runs at once; 0: one for each core, or for each GPU."),
]
ThreadsFlag = Annotated[
    int,
    tyro.conf.arg(
        help="Threads of torch in each run; 0: OMP_NUM_THREADS if that is set, else one on"
        " features, and a share of the cores on images."
    ),
]
ClusterFlag = Annotated[
    str,
    tyro.conf.arg(
        help="dask://HOST:PORT: do the runs there. Its workers (one thread each: dask worker"
        " --nthreads 1) must see the data and OUT under the same paths."
    ),
]
QuietFlag = Annotated[bool, tyro.conf.arg(help="Show no progress.")]
TrustFlag = Annotated[
    bool,
    tyro.conf.arg(
        help="Run the code that the record of RUN names (a method or a backbone of its author's"
        " own), after saying what it is. Without this flag such a record is refused: its code could"
        " do anything."
    ),
]
