"""Office-Home RS-UT: three domains whose class shares are reversed between source and target.

Of each domain, published lists choose one set of images as source (RS) and another as target (UT):
both have a long tail, and the classes that are frequent in one are rare in the other (Tan et al.
2020). The metric is the mean of the accuracies of all classes.
"""

import dataclasses

from equida.data.benchmarks.base import Benchmark, BenchmarkDomain, register_benchmark
from equida.data.benchmarks.office_home import OFFICE_HOME

# The lists number the classes by the alphabet, other than the lists of the whole data set.
ORDER = sorted(range(len(OFFICE_HOME.classes)), key=OFFICE_HOME.classes.__getitem__)


def _domain(key: str) -> BenchmarkDomain:
    """A domain of Office-Home under the class order of the lists."""
    whole = OFFICE_HOME.domain(key)
    return dataclasses.replace(whole, per_class=tuple(whole.per_class[k] for k in ORDER))


OFFICE_HOME_RSUT = Benchmark(
    name="office_home_rsut",
    title="Office-Home RS-UT",
    aliases=("RSUT", "OfficeHomeRSUT"),
    domains=(_domain("Cl"), _domain("Pr"), _domain("Rw")),
    classes=tuple(OFFICE_HOME.classes[k] for k in ORDER),
    tasks=("Rw2Pr", "Rw2Cl", "Pr2Rw", "Pr2Cl", "Cl2Rw", "Cl2Pr"),
    page=OFFICE_HOME.page,
    obtain=f"{OFFICE_HOME.obtain}; then get the six lists Clipart_RS.txt, Clipart_UT.txt, ... of"
    " 'Class-imbalanced Domain Adaptation: An Empirical Odyssey' (Tan et al. 2020)",
    layout="DIR/{Clipart,Product,Real World}/Alarm_Clock/00001.jpg, and the lists in DIR or in"
    " --lists DIR",
    metric="mean_class_accuracy",
    backbone=OFFICE_HOME.backbone,
    source_list="_RS",
    target_list="_UT",
)
register_benchmark(OFFICE_HOME_RSUT)
