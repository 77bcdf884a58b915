"""The site: `make docs` builds it from the repository, offline; a warning is an error."""

import os
import sys
import warnings
from pathlib import Path

import equida

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the gallery's steps are too small to be shared

project = "equida"
author = "The equida developers"
copyright = "the equida developers, MIT licence"
version = release = equida.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_autodoc_typehints",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "gallery_times",
    "plain_docstrings",
    "mathml",
    "from_registry",
    "rooms",
    "theory_page",
]
exclude_patterns = ["_build", "_ext", "gallery"]
templates_path: list[str] = []
nitpicky = False
suppress_warnings = ["config.cache", "autodoc.mocked_object"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # sphinx_autodoc_typehints puts them beside the arguments
typehints_defaults = "comma"
always_use_bars_union = True


def typehints_formatter(annotation: object, config: object) -> str | None:
    """What a reader calls a union of many types, alone or with None; None for other types."""
    from numpy.typing import ArrayLike

    from equida.api import DataLike

    for named, name in ((DataLike, "data"), (ArrayLike, "array")):
        if annotation == named:
            return f"*{name}*"
        if annotation == named | None:
            return f"*{name}* | ``None``"
    return None


napoleon_numpy_docstring = False
# Docstrings are plain text, whose single backticks mark code.
default_role = "code"

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "ExampleTitleSortKey",
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "reset_modules": ("matplotlib", "gallery_times.stopwatch"),
    "reset_modules_order": "both",
    "min_reported_time": 0,
    "capture_repr": ("_repr_html_", "__repr__"),
    "nested_sections": False,
    "plot_gallery": os.environ.get("EQUIDA_DOCS_GALLERY", "1") == "1",
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

html_theme = "furo"
html_title = f"equida {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7cc0ee", "color-brand-content": "#7cc0ee"},
}
pygments_style, pygments_dark_style = "friendly", "monokai"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
