"""Domains and tasks: what a user brings, as samples that are read when they are needed."""

from equida.data.arrays import array_domain
from equida.data.benchmarks import BENCHMARKS, Benchmark, BenchmarkDomain, benchmark
from equida.data.domain import ArrayDomain, Domain, ImageDomain
from equida.data.feature_file import feature_domain, feature_domains
from equida.data.folders import image_folder
from equida.data.images import UnreadableImage, read_image
from equida.data.layouts import load_domain, load_task
from equida.data.lists import image_list
from equida.data.opening import open_domain
from equida.data.readable import (
    check_readable,
    drop_unreadable,
    keep_readable,
    unreadable_message,
)
from equida.data.task import Task, make_task

__all__ = [
    "BENCHMARKS",
    "ArrayDomain",
    "Benchmark",
    "BenchmarkDomain",
    "Domain",
    "ImageDomain",
    "Task",
    "UnreadableImage",
    "array_domain",
    "benchmark",
    "check_readable",
    "drop_unreadable",
    "feature_domain",
    "feature_domains",
    "image_folder",
    "image_list",
    "keep_readable",
    "load_domain",
    "load_task",
    "make_task",
    "open_domain",
    "read_image",
    "unreadable_message",
]
