"""VisDA-2017: renderings of 3D models, and photographs."""

from equida.data.benchmarks.base import (
    Benchmark,
    BenchmarkDomain,
    numbers,
    register_benchmark,
    words,
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
            per_class=numbers(
                "14309 7365 16640 12800 9512 14240 17360 12160 10731 11680 16000 9600"
            ),
            per_class_firm=False,
        ),
        BenchmarkDomain(
            key="Real",
            title="Real",
            folder="validation",
            aliases=("R", "val", "coco"),
            per_class=numbers("3646 3475 4690 10401 4691 2075 5796 4000 4549 2281 4236 5548"),
        ),
    ),
    classes=words(
        "aeroplane bicycle bus car horse knife motorcycle person plant skateboard train truck"
    ),
    short_classes=words("plane bcycl bus car horse knife mcycl person plant sktbrd train truck"),
    tasks=("Synthetic2Real",),
    page="http://ai.bu.edu/visda-2017/",
    obtain="get train.tar and validation.tar of the classification track and unpack both",
    layout="DIR/{train,validation}/aeroplane/*.png or *.jpg",
    metric="mean_class_accuracy",
    backbone="resnet101",
    # The BNM authors' learning rates; the paper most likely took them over with their protocol.
    learning_rates={"Synthetic2Real": 3e-4},
)
register_benchmark(VISDA2017)
