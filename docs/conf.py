"""The documentation site: ``python -m tools.site`` builds it.

Furo is the theme: plain HTML with a light and a dark form, narrow pages that fit a phone, and
nothing that is fetched from elsewhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS), str(DOCS.parent)]

import pages  # noqa: E402

import taeda  # noqa: E402

project = "taeda"
author = "the authors of taeda"
release = version = taeda.__version__
copyright = "the authors of taeda"

extensions = ["myst_nb", "repo_links", "source_pages", "mathml", "api_pages", "page_time"]
extensions += ["accessible"]
exclude_patterns = [
    "_build",
    "_ext",
    "README.md",
    "examples",
    "reference/*.txt",
    "**.ipynb_checkpoints",
]
templates_path = ["_templates"]
highlight_language = "text"
toc_object_entries_show_parents = "hide"
add_module_names = False
maximum_signature_line_length = 84
python_display_short_literal_types = True
nitpicky = False

# ---- pages that are files elsewhere, and folders below a page -----------------------------------

repo_pages = {
    "project/contributing": "CONTRIBUTING.md",
    "project/changelog": "CHANGELOG.md",
    "project/security": "SECURITY.md",
}
repo_children = {"kernels/README": "*", "adr/README": "0*"}

# ---- Markdown and notebooks ---------------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_block", "deflist"]
myst_heading_anchors = 4
myst_url_schemes = ["http", "https", "mailto", "source"]
myst_update_mathjax = False
nb_execution_mode = "cache"
nb_execution_cache_path = str(DOCS / "_build" / ".jupyter_cache")
nb_execution_timeout = 60  # of a cell; what a page may take is held by page_seconds
nb_execution_in_temp = True  # pages that save files leave none behind
nb_execution_raise_on_error = True
nb_execution_show_tb = True
# A page whose data or packages are missing (docs/pages.py knows what it needs) is not run.
nb_execution_excludepatterns = [
    str(page.relative_to(DOCS)) for page in pages.PAGES if pages.missing(page)
]
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
nb_merge_streams = True
page_seconds = 10

# ---- HTML ---------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"taeda {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_domain_indices = False
html_use_index = False  # names are found by search and in the tables of their modules
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {
        "color-brand-primary": "#1b5e3a",
        "color-brand-content": "#0b5394",
        "color-foreground-muted": "#57606a",
        "color-foreground-border": "#57606a",
        "color-api-name": "#0b5394",
        "color-api-pre-name": "#57606a",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8fd6a9",
        "color-brand-content": "#7fb8ff",
        "color-foreground-muted": "#a8b1bb",
        "color-foreground-border": "#a8b1bb",
        "color-api-name": "#7fb8ff",
        "color-api-pre-name": "#a8b1bb",
    },
}
