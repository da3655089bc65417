"""Write docs/algorithms: every textbook algorithm, its equations beside its code, from the source itself.

python tools/make_algorithm_pages.py            a test holds the pages against the source
"""

import ast
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE, PAGES = ROOT / "src" / "delassus" / "textbook", ROOT / "docs" / "algorithms"
MODULES = ("robot", "rows", "tree", "osim", "inverse", "matrix_free", "dynamics")
# parts of a docstring that say how a function is called, not what it computes
CALL = ("Args:", "Returns:", "Raises:", "Example:")


def prose(doc):
    """Docstring as Markdown: paragraphs, and indented equations as blocks; without the parts about the call."""
    out, block, skipping = [], [], False
    for line in [*doc.splitlines(), ""]:
        if line and not line.startswith(" "):
            skipping = line in CALL
        if skipping:
            continue
        if line.startswith("    ") or (not line and block):
            block.append(line)
            continue
        if block:
            out += ["```text", *textwrap.dedent("\n".join(block)).strip("\n").splitlines(), "```"]
            block = []
        out.append(line)
    if block:
        out += ["```text", *textwrap.dedent("\n".join(block)).strip("\n").splitlines(), "```"]
    lines = []
    for line in out:
        if line == "```text" and lines and lines[-1]:
            lines.append("")
        if lines and lines[-1] == "```" and line:
            lines.append("")
        if line or (lines and lines[-1]):
            lines.append(line)
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", "\n".join(lines).strip())


def code(node, text):
    """Source of a function or class without its docstring."""
    lines = text.splitlines()
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
    doc = node.body[0]
    kept = lines[first : doc.lineno - 1] + lines[doc.end_lineno : node.end_lineno]
    return "\n".join(kept).rstrip()


def page(module):
    """Markdown of a module."""
    text = (SOURCE / f"{module}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, *rest = ast.get_docstring(tree).splitlines()
    parts = [f"# {module}: {title[0].lower()}{title[1:].rstrip('.')}" if title[1:2].islower() else f"# {module}: {title.rstrip('.')}"]
    parts += [
        f"Made from `src/delassus/textbook/{module}.py` by `tools/make_algorithm_pages.py`; symbols are in the [glossary](../glossary.md).",
        prose("\n".join(rest).strip("\n")),
    ]
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            parts += [f"## {node.name}", prose(ast.get_docstring(node)), f"```python\n{code(node, text)}\n```"]
    return "\n\n".join(p for p in parts if p) + "\n"


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for name in MODULES:
        (PAGES / f"{name}.md").write_text(page(name), encoding="utf-8")
