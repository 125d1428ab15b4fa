"""The pages of the reference, written from the library's docstrings before Sphinx reads them.

``reference/index.rst`` has a table of the modules; each module has a page with a table of its names
and an entry for each, or, where it has many, a page for each group of names. Examples are run while
the pages are written, and one that gives something else than it says is a warning, which fails the
build.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import api_groups  # noqa: E402
import docstrings  # noqa: E402
import pictures  # noqa: E402
from sphinx import addnodes  # noqa: E402
from sphinx.transforms.post_transforms import SphinxPostTransform  # noqa: E402
from sphinx.util import logging  # noqa: E402

import taeda  # noqa: E402
from tools import public_examples, public_names  # noqa: E402
from tools.public_names import Name  # noqa: E402

logger = logging.getLogger(__name__)


class Reference:
    """Everything that is written, and what the pages need to know of one another.

    Args:
        folder: where the pages go.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = public_names.names()
        self.known: dict[str, str] = {}
        self.by_value: dict[int, str] = {}
        self.examples = 0
        self.formulas = public_names.table(folder / "formulas.txt")
        self.more_examples = public_names.table(public_examples.MORE)
        for inside in self.names.values():
            for name in inside:
                self.known[name.path] = name.path
                if name.kind in ("class", "function"):
                    self.by_value[id(name.value)] = name.path
        for module in self.names:
            for key, value in public_names.listed(module):
                if id(value) in self.by_value:
                    self.known.setdefault(f"{module}.{key}", self.by_value[id(value)])

    # ---- text -----------------------------------------------------------------------------------

    def link(self, code: str, module: str) -> str | None:
        """The path of the name that a piece of code is, None if it is none."""
        text = code.removesuffix("()")
        if not re.fullmatch(r"[A-Za-z_][\w.]*", text):
            return None
        if text in self.known:
            return self.known[text]
        for prefix in (module, "taeda"):
            path = f"{prefix}.{text}"
            # A bare lower-case word is more often an argument's name than a function's.
            if path in self.known and ("." in text or code.endswith("()") or text[0].isupper()):
                return self.known[path]
        return None

    def body(self, name: Name) -> list[str]:
        """What an entry says, as reStructuredText."""
        text = public_names.documentation(name)
        found = docstrings.converted(text, lambda code: self.link(code, name.module))
        if formula := self.formulas.get(name.path.removeprefix("taeda.")):
            found[1:1] = ["", ".. math::", "", f"   {formula}", ""]
        if picture := pictures.of(name):
            found += ["", ".. raw:: html", "", f"   {picture}", ""]
        extra = self.more_examples.get(name.path.removeprefix("taeda."))
        if ">>>" in text:
            lines, problem = public_examples.checked(name)
            self.examples += lines
            if problem:
                logger.warning("the example of %s fails:\n%s", name.path, problem)
        elif extra is not None:
            shown = public_examples.run(extra)
            self.examples += sum(line.startswith(">>> ") for line in shown)
            found += ["", ".. code-block:: pycon", "", *docstrings.moved(shown, "   ")]
        return found

    # ---- entries --------------------------------------------------------------------------------

    def entry(self, name: Name, indent: str = "") -> list[str]:
        """The directive of a name with all that it says."""
        if name.kind == "method" and (function := self.function_of(name)):
            said = [public_names.summary(name)]
            content = docstrings.text(said, lambda code: self.link(code, "taeda"))
            content += ["", f"The same as the function :py:obj:`{function}`."]
        else:
            content = self.body(name)
        forms = public_names.signatures(name)
        if len(forms) > 8:
            forms = forms[:8]
        kind = {"value": "data", "property": "attribute"}.get(name.kind, name.kind)
        own = name.path.removeprefix("taeda.") if name.module == "taeda.Tensor" else name.name
        head = f".. py:{kind}:: "
        lines = [head + own + forms[0]]
        lines += [" " * len(head) + own + form for form in forms[1:]]
        if name.module == "taeda.Tensor":
            lines += ["   :module: taeda"]
        lines.append("")
        lines += docstrings.moved(content, "   ")
        if place := self.source_line(name):
            lines += ["", "   .. rst-class:: source-line", "", f"   Source: {place}"]
        if name.kind == "class":
            for member in public_names.members(name):
                if public_names.documentation(member):
                    lines += ["", *self.entry(member, "   ")]
        elif name.kind == "value" and not isinstance(name.value, taeda.dtype):
            shown = repr(name.value)
            if len(shown) < 80 and not shown.startswith("<"):
                lines += ["", f"   Value: ``{shown}``"]
        return docstrings.moved([*lines, ""], indent)

    def function_of(self, name: Name) -> str | None:
        """The function that a method of Tensor is, too."""
        if not public_names.is_operation(name.value) or name.module != "taeda.Tensor":
            return None
        own = name.name
        for candidate in (own, own.rstrip("_")):
            op = getattr(taeda._C.ops, candidate, None)
            if op is not None and id(op) in self.by_value:
                return self.by_value[id(op)]
        return None

    def source_line(self, name: Name) -> str:
        place = public_names.source(name)
        if place is None:
            return ""
        file, line = place
        text = docstrings.escaped(f"{file}:{line}")
        return f"`{text} <source:{file}#L{line}>`__"

    # ---- pages ----------------------------------------------------------------------------------

    def table(self, names: list[Name]) -> list[str]:
        """Names with their first sentences."""
        lines = [".. list-table::", "   :class: names", "   :widths: 30 70", ""]
        for name in names:
            said = public_names.summary(name)
            text = docstrings.inline(said, functools.partial(self.link, module=name.module))
            lines += [f"   * - :py:obj:`{name.name} <{name.path}>`", f"     - {text}"]
        return [*lines, ""]

    def page(self, title: str, module: str, names: list[Name], about: str = "") -> list[str]:
        lines = [title, "=" * len(title), "", f".. py:currentmodule:: {module}", ""]
        if about:
            lines += [*docstrings.converted(about, lambda code: self.link(code, module)), ""]
        lines += self.table(names)
        if about:
            lines += self.elsewhere(module)
        if module == "taeda.Tensor":
            lines += [".. py:currentmodule:: taeda", ""]
        for name in names:
            if name.path != "taeda.Tensor":  # which has pages of its own
                lines += self.entry(name)
        return lines

    def elsewhere(self, module: str) -> list[str]:
        """A paragraph with the names of a module whose entries are on other modules' pages."""
        own = {name.name for name in self.names[module]}
        links = []
        for name, value in public_names.listed(module):
            target = self.by_value.get(id(value))
            if name not in own and target is not None:
                links.append(f":py:obj:`{name} <{target}>`")
        if not links or module in ("taeda", "taeda.Tensor"):
            return []
        return ["Also here:", "", ".. rst-class:: words", "", "   " + " ".join(links), ""]

    def of_module(self, module: str) -> dict[str, list[str]]:
        """The pages of a module by the names of their files."""
        inside = self.names[module]
        value = public_names.load(module)
        about = (value.__doc__ or "").strip()
        if module == "taeda.Tensor":
            about = about.partition("\n\n")[0]
        pages = api_groups.groups(module, inside)
        if len(pages) == 1:
            return {module: self.page(module, module, inside, about)}
        found: dict[str, list[str]] = {}
        lines = [module, "=" * len(module), ""]
        lines += [*docstrings.converted(about, lambda code: self.link(code, module)), ""]
        if module == "taeda.Tensor":
            lines += [".. py:class:: taeda.Tensor", ""]
        toctree = [".. toctree::", "   :hidden:", ""]
        for title, names in pages.items():
            slug = re.sub(r"\W+", "-", title.lower()).strip("-")
            found[f"{module}-{slug}"] = self.page(
                title if module == "taeda" else f"{module.removeprefix('taeda.')}: {title.lower()}",
                module,
                names,
            )
            toctree.append(f"   {title} <{module}-{slug}>")
            words = " ".join(f":py:obj:`{n.name} <{n.path}>`" for n in names)
            head = f":doc:`{title} <{module}-{slug}>` ({len(names)})"
            lines += [head, "", ".. rst-class:: words", "", f"   {words}", ""]
        found[module] = [*lines, *self.elsewhere(module), *toctree, ""]
        return found

    def modules(self, paths: list[str], folder: str) -> list[str]:
        """A table of modules, with what each is about."""
        lines = [".. list-table::", "   :class: names", "   :widths: 36 10 54", ""]
        for path in paths:
            about = (public_names.load(path).__doc__ or "").strip().partition("\n\n")[0]
            said = docstrings.inline(" ".join(about.split()), lambda code: None)
            lines += [f"   * - :doc:`{path} <{folder}{path}>`"]
            lines += [f"     - {len(self.names[path])}", f"     - {said}"]
        return [*lines, ""]

    def index(self) -> dict[str, list[str]]:
        """The page with all modules, and one for each section, which orders the navigation."""
        count = sum(map(len, self.names.values()))
        lines = ["Reference", "=========", ""]
        lines += [
            f"The {count:,} public names of taeda, from their docstrings, and where each is",
            "defined. Names that PyTorch documents and taeda lacks are listed in :doc:`/names`.",
            "",
        ]
        toctree = [".. toctree::", "   :hidden:", ""]
        found = {}
        for section, paths in public_names.modules().items():
            paths = [path for path in paths if path in self.names]
            page = "section-" + re.sub(r"\W+", "-", section.lower())
            lines += [section, "-" * len(section), "", *self.modules(paths, "api/")]
            toctree.append(f"   api/{page}")
            inner = [".. toctree::", "   :hidden:", "", *(f"   {path}" for path in paths), ""]
            head = [section, "=" * len(section), ""]
            found[f"api/{page}"] = [*head, *self.modules(paths, ""), *inner]
        return {"index": [*lines, *toctree, ""], **found}

    def write(self) -> int:
        """Write all pages; those that are no longer made are removed."""
        pages = self.index()
        for module in self.names:
            for name, lines in self.of_module(module).items():
                pages[f"api/{name}"] = lines
        (self.folder / "api").mkdir(exist_ok=True)
        kept = set()
        for name, lines in pages.items():
            file = self.folder / f"{name}.rst"
            text = "\n".join(lines).rstrip() + "\n"
            kept.add(file)
            if not file.exists() or file.read_text() != text:
                file.write_text(text)
        for file in (self.folder / "api").glob("*.rst"):
            if file not in kept:
                file.unlink()
        return len(pages)


def on_builder_inited(app: Any) -> None:
    reference = Reference(Path(app.srcdir) / "reference")
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        count = reference.write()
    names = sum(map(len, reference.names.values()))
    print(f"reference: {count} pages, {names} names, {reference.examples} lines of examples run")


# What the types in signatures stand for; the others, such as ``bool``, are Python's own.
TYPES = {
    "Tensor": "taeda.Tensor",
    "Module": "taeda.nn.Module",
    "Parameter": "taeda.nn.Parameter",
    "Optimizer": "taeda.optim.Optimizer",
    "Generator": "taeda.Generator",
    "dtype": "taeda.dtype",
    "device": "taeda.device",
    "layout": "taeda.layout",
    "memory_format": "taeda.memory_format",
    "Size": "taeda.Size",
    "Distribution": "taeda.distributions.Distribution",
    "Dataset": "taeda.utils.data.Dataset",
}


class Annotations(SphinxPostTransform):
    """Let types in signatures lead to the classes that they are, and nowhere else."""

    default_priority = 5  # before references are resolved

    def run(self, **kwargs: Any) -> None:
        for signature in self.document.findall(addnodes.desc_signature):
            for node in list(signature.findall(addnodes.pending_xref)):
                target = TYPES.get(node["reftarget"])
                if target is None:
                    node.replace_self(node.children)
                else:
                    node["reftarget"] = target
                    node["refspecific"] = False


def setup(app: Any) -> dict[str, Any]:
    app.add_post_transform(Annotations)
    app.connect("builder-inited", on_builder_inited, priority=100)
    return {"version": "1", "parallel_read_safe": True}
