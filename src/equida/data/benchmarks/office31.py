"""Office-31: office objects as sold, photographed well, and seen by a webcam."""

from equida.data.benchmarks.base import (
    Benchmark,
    BenchmarkDomain,
    numbers,
    register_benchmark,
    words,
)

OFFICE31 = Benchmark(
    name="office31",
    title="Office-31",
    aliases=("office",),
    domains=(
        BenchmarkDomain(
            key="A",
            title="Amazon",
            folder="amazon",
            per_class=numbers(
                "92 82 72 82 36 94 91 97 97 81 99 100 100 98 100 99 100 94 96 95 93 100 98 98 90"
                " 75 100 99 99 96 64"
            ),
        ),
        BenchmarkDomain(
            key="D",
            title="DSLR",
            folder="dslr",
            train_crop="random-resized-crop",
            per_class=numbers(
                "12 21 24 12 16 12 13 14 15 15 13 10 24 16 31 22 12 8 10 10 13 15 23 18 10 7 18"
                " 26 21 22 15"
            ),
        ),
        BenchmarkDomain(
            key="W",
            title="Webcam",
            folder="webcam",
            train_crop="random-resized-crop",
            per_class=numbers(
                "29 21 28 12 16 31 40 18 21 19 27 27 30 19 30 43 30 27 28 32 16 20 30 27 40 11 25"
                " 30 24 23 21"
            ),
        ),
    ),
    classes=words(
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
    backbone="resnet50",
    # The BNM authors' learning rates; the paper most likely took them over with their protocol.
    learning_rates={"A2D": 3e-4, "D2W": 3e-4, "W2D": 3e-4},
)
register_benchmark(OFFICE31)
