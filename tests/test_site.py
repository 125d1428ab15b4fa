"""The parts of the documentation site, without building it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tools import check_site, public_names

ROOT = Path(__file__).resolve().parents[1]
EXTENSIONS = str(ROOT / "docs" / "_ext")


@pytest.fixture(autouse=True)
def extensions(monkeypatch):
    monkeypatch.syspath_prepend(EXTENSIONS)
    yield
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(EXTENSIONS):
            del sys.modules[name]


def converted(text: str, known: str = "") -> str:
    import docstrings

    link = {known: f"taeda.{known}"}.get
    return "\n".join(docstrings.converted(text, link)).strip()


# ---- docstrings ---------------------------------------------------------------------------------


def test_text_is_escaped_and_code_is_not():
    assert converted("x * y, resize_ and |x|: `a_b`, ``c*``.") == (
        r"x \* y, resize\_ and \|x\|: ``a_b``, ``c*``."
    )
    assert converted("a `b`s and (`c`)") == r"a ``b``\ s and (``c``)"
    assert converted("See `relu`.", "relu") == "See :py:obj:`relu <taeda.relu>`."
    assert converted("See `docs/cuda.md`.") == "See `docs/cuda.md <../../cuda.html>`__."


def test_sections_become_lists():
    text = "Sum.\n\nArgs:\n    a, b: numbers,\n        of one dtype.\n    c: more.\n\nRaises:\n    E: no."
    assert converted(text) == (
        "Sum.\n\n:Arguments:\n   * **a, b**: numbers, of one dtype.\n\n   * **c**: more.\n\n\n\n"
        ":Raises:\n   * **E**: no."
    )
    assert converted("Sum.\n\nReturns:\n    A `Tensor`.") == "Sum.\n\n:Returns:\n   A ``Tensor``."


def test_examples_and_lists_stay():
    text = "Do it.\n>>> 1 + 1\n2\n\n- one\n  more\n- two"
    assert converted(text) == (
        "Do it.\n\n.. code-block:: pycon\n\n   >>> 1 + 1\n   2\n\n* one more\n\n* two"
    )
    assert converted("So::\n\n    a *= b") == "So::\n\n    a *= b"


def test_every_docstring_is_converted():
    docutils = pytest.importorskip("docutils.core")
    texts = [
        public_names.documentation(n) for found in public_names.names().values() for n in found
    ]
    text = "\n\n".join(converted(t) for t in texts if ">>>" not in t)
    settings = {"report_level": 1, "halt_level": 2, "warning_stream": False}
    docutils.publish_doctree(text, settings_overrides=settings)


# ---- links --------------------------------------------------------------------------------------


def test_links_lead_to_pages_or_sources(tmp_path):
    pytest.importorskip("sphinx")
    import repo_links

    docs = ROOT / "docs"
    found = {"design", "adr/README", "kernels/README", "index", "project/contributing"}
    places = repo_links.Places(docs, found, {"project/contributing": "CONTRIBUTING.md"})
    text = (
        "[a](../design.md#x) [b](../../csrc/kernels/cpu/gemm/) [c](../../CONTRIBUTING.md) [d](../adr/)\n"
        "[e](https://x.y) [f](#here) [g](gone.md)\n```\n[h](../design.md)\n```\n[i](../performance.svg)"
    )
    assert repo_links.rewritten(text, docs / "kernels", places) == (
        "[a](/design.md#x) [b](source:csrc/kernels/cpu/gemm) [c](/project/contributing.md) "
        "[d](/adr/README.md)\n[e](https://x.y) [f](#here) [g](gone.md)\n"
        "```\n[h](../design.md)\n```\n[i](/performance.svg)"
    )


def test_links_to_sources_outlive_a_build(tmp_path):
    """A page that the next build does not read again keeps the sources that it links to."""
    application = pytest.importorskip("sphinx.application")
    (tmp_path / "index.rst").write_text("A\n=\n\n`it <source:README.md#L3>`__\n")
    other = tmp_path / "b.rst"
    for text in (":orphan:\n\nB\n=\n", ":orphan:\n\nC\n=\n"):
        other.write_text(text)
        out = tmp_path / "out"
        settings = {"extensions": ["repo_links"]}
        app = application.Sphinx(tmp_path, None, out, out, "html", settings, status=None)
        app.build()
        assert app.env.taeda_sources == {"index": {"README.md"}, "b": set()}
        assert 'href="source/README.md.html#L3"' in (out / "index.html").read_text()


def test_tables_of_contents_take_the_pages_that_they_do_not_name():
    pytest.importorskip("sphinx")
    import repo_links

    found = {"a/one", "a/two", "a/three", "b/one", "top", "more", "index"}
    assert repo_links.others("\nText <top>\n*\n", found) == "\nText <top>\nmore\n"
    assert repo_links.others("x\na/two\na/*\ny", found) == "x\na/two\na/one\na/three\ny"
    assert (
        repo_links.others("b/one\n", found) == "b/one\n" and repo_links.others("c/*\n", found) == ""
    )


def test_source_pages(tmp_path):
    pytest.importorskip("pygments")
    import source_pages

    shown = source_pages.code("def f(x):\n    return 'a<b'  # why\n", "f.py")
    assert '<i id="L1"><b class="k">def</b> <b class="f">f</b>(x):</i>' in shown
    assert '<b class="s">a&lt;b</b>' in shown and '<b class="c"># why</b>' in shown
    files, folders = source_pages.wanted({"csrc/kernels/cpu/gemm", "docs/examples/digits.py"})
    assert folders == {"csrc/kernels/cpu/gemm"} and "docs/examples/digits.py" in files
    assert "csrc/kernels/cpu/gemm/gemm.cpp" in files and "python/taeda/nn/module.py" in files
    page = source_pages.page_of_folder(Path("csrc/kernels/cpu/gemm"), folders, files)
    assert 'href="gemm.cpp.html"' in page and "../../../../../index.html" in page


def test_wrong_links_are_found(tmp_path):
    (tmp_path / "b.html").write_text('<h1 id="top">B</h1>')
    page = tmp_path / "a.html"
    page.write_text('<a href="b.html#top">b</a><script src="https://cdn.x/y.js"></script>')
    for good in ("b.html", "b.html#top", "#", "https://example.org/x", "mailto:a@b.c"):
        assert check_site.wrong_link(page, good) is None, good
    for bad in ("c.html", "b.html#no", "http://", "ftp://x.y/z", "javascript:f()"):
        assert check_site.wrong_link(page, bad) is not None, bad
    assert list(check_site.links(tmp_path)) == ["a.html: loads https://cdn.x/y.js from elsewhere"]


# ---- pages --------------------------------------------------------------------------------------


def test_the_overview_names_every_page():
    overview = (ROOT / "docs" / "README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md", "index.md"}
    assert {page for page in pages if f"]({page})" not in overview} == set()


def test_the_installation_page_names_every_extra():
    project = (ROOT / "pyproject.toml").read_text()
    table = re.search(r"^\[project\.optional-dependencies\]\n(.*?)^\[", project, re.M | re.S)
    assert table
    extras = set(re.findall(r"^(\w+) = \[", table[1], re.M)) - {"dev"}  # CONTRIBUTING has it
    named = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/start/install.md").read_text(), re.M)
    assert extras == set(named)


def test_every_name_has_its_place():
    import api_groups

    for module, inside in public_names.names().items():
        pages = api_groups.groups(module, inside)
        assert sum(map(len, pages.values())) == len(inside)
        assert module not in ("taeda.nn", "taeda") or max(map(len, pages.values())) < 160
        assert api_groups.OTHER_LAYERS not in pages or len(pages[api_groups.OTHER_LAYERS]) < 8


def test_activations_have_curves():
    import pictures

    names = {name.name: name for name in public_names.names()["taeda.nn"]}
    drawn = {name for name, value in names.items() if pictures.of(value)}
    assert {"ReLU", "GELU", "Tanh", "Threshold"} <= drawn
    assert not {"Softmax", "Linear", "GLU", "MultiheadAttention"} & drawn


def test_formulas_are_of_names():
    formulas = public_names.table(ROOT / "docs" / "reference" / "formulas.txt")
    paths = {name.path for found in public_names.names().values() for name in found}
    assert {f"taeda.{name}" for name in formulas} <= paths
    convert = pytest.importorskip("latex2mathml.converter").convert
    for text in formulas.values():
        assert "\\" not in convert(text)


def test_pages_get_what_the_theme_leaves_out():
    import accessible

    page = '<div class="highlight"><pre>x</pre></div><dl>\n<dd><em class="sig-param">a</em></dd>\n</dl>'
    once = accessible.changed(page)
    assert '<pre tabindex="0">' in once and "<dl>" not in once and '<span class="params">' in once
    assert accessible.changed(once) == once
