"""The site's pages that are notebooks run as plain programs, those of the gallery on PyTorch too."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
specification = importlib.util.spec_from_file_location("docs_pages", DOCS / "pages.py")
pages = importlib.util.module_from_spec(specification)
specification.loader.exec_module(pages)

GALLERY = [page for page in pages.PAGES if page.parent.name == "gallery"]
# Settings at the top of a page that take fewer steps; the figures of such a run say nothing.
SMALLER = {
    "gallery/cart-pole": {"rounds": 4},
    "gallery/char-gpt": {"steps": 40},
    "gallery/diffusion": {"steps": 100},
    "gallery/digits": {"epochs": 2},
    "gallery/fashion-mnist": {"steps": 20},
    "gallery/graph-network": {"steps": 40},
    "gallery/neural-ode": {"steps": 20},
    "gallery/sunspots": {"steps": 40},
    "gallery/vae": {"epochs": 4},
    "gallery/word-vectors": {"steps": 40},
}
START = "import warnings; warnings.filterwarnings('ignore', 'FigureCanvasAgg is non-interactive')\n"


def page_id(page: Path) -> str:
    return f"{page.parent.name}/{page.stem}"


def program_of(page: Path) -> str:
    """The code of a page, with its smaller settings."""
    program = pages.code(page)
    for name, value in SMALLER.get(page_id(page), {}).items():
        program, found = re.subn(
            rf"^{name} = .*$", f"{name} = {value}", program, flags=re.MULTILINE
        )
        assert found == 1, f"{page_id(page)} sets {name} {found} times"
    return program


def run(page: Path, program: str, folder: Path, warnings: str = "error") -> None:
    absent = pages.missing(page)
    if absent:
        pytest.skip(f"needs {', '.join(absent)}")
    environment = {
        **os.environ,
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(folder),
        "OMP_NUM_THREADS": "1",
        "TAEDA_EXTENSIONS_DIR": str(folder),
    }
    done = subprocess.run(
        [sys.executable, "-W", warnings, "-c", START + program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", pages.PAGES, ids=page_id)
def test_lines_of_code_fit(page):
    assert [line for line in pages.code(page).splitlines() if len(line) > 100] == []


@pytest.mark.parametrize("page", pages.PAGES, ids=page_id)
def test_page_runs(page, tmp_path):
    # What the gallery trains, strict finds nothing in.
    strictly = "import taeda; taeda.strict(every=2).enable()\n" if page in GALLERY else ""
    run(page, strictly + program_of(page), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="runs on PyTorch")
@pytest.mark.parametrize("page", GALLERY, ids=page_id)
def test_gallery_runs_on_pytorch(page, tmp_path):
    run(page, re.sub(r"\btaeda\b", "torch", program_of(page)), tmp_path, warnings="ignore")


def test_every_page_of_the_gallery_has_smaller_settings():
    assert set(SMALLER) == {page_id(page) for page in GALLERY}
