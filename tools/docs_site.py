"""Hooks of mkdocs.yml: pages made from other files of the repository while the site is built, so that none of them can go stale.

    index, contributing, changelog, benchmarks, robots    Markdown files that lie elsewhere
    tutorials/                                             examples/, comments as text, with what a run prints; notebooks with their outputs
    algorithms/                                            the tables of docs/algorithms/index.md, a page a row: first comment of the core's file, textbook function
    api/                                                   the names of delassus.__all__, a page a room, from docstrings alone

Links in Markdown are those of the repository; here they are turned into links between pages. A link to a file that has no page becomes text, one to
nothing a warning, which ``mkdocs build --strict`` takes for an error.

python tools/docs_site.py prints what the examples print, as JSON.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import logging
import os
import posixpath
import re
import runpy
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from html import unescape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXTBOOK = "src/delassus/textbook"
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "RELEASING.md": "releasing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "src/delassus/assets/README.md": "robots.md",
}
WORDS = {
    "urdf": "URDF",
    "scipy": "SciPy",
    "cg": "conjugate gradients",
    "cassie": "Cassie",
    "gymnasium": "Gymnasium",
    "go2": "Go2",
    "mpc": "MPC",
    "torch": "PyTorch",
}
log = logging.getLogger("mkdocs.hooks.docs_site")


# ---- algorithms: equation, core, textbook -----------------------------------------------------------------------------------

# parts of a docstring that say how a function is called, not what it computes
CALL = ("Args:", "Returns:", "Raises:", "Example:")


@dataclass(frozen=True)
class Algorithm:
    """A row of a table of docs/algorithms/index.md."""

    group: str
    setup: str
    name: str
    computes: str
    call: str
    files: tuple[str, ...]
    functions: tuple[tuple[str, str], ...]

    @property
    def page(self) -> str:
        """Where its page is."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower().replace("⁻¹", " inverse")).strip("-") + ".md"


def links(cell):
    """Pairs of text and target of the links in a cell, targets from the root of the repository."""
    return tuple(
        (text, posixpath.normpath(posixpath.join("docs/algorithms", to))) for text, to in re.findall(r"\[`([^`]+)`\]\(([^)]+)\)", cell)
    )


def algorithms():
    """Rows of all tables of docs/algorithms/index.md."""
    found = []
    for part in re.split(r"^## ", (ROOT / "docs/algorithms/index.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        group = part.splitlines()[0]
        setup = "\n".join(re.findall(r"^```python\n(.*?)^```", part, re.MULTILINE | re.DOTALL))
        for line in re.findall(r"^\|(.+)\|$", part, re.MULTILINE)[2:]:
            name, computes, call, core, textbook = (cell.strip() for cell in line.split("|"))
            files = tuple(to for _, to in links(core))
            found.append(Algorithm(group, setup, name, computes, call.strip("`"), files, links(textbook)))
    return found


def prose(doc):
    """Docstring as Markdown: paragraphs, and indented equations as blocks; without the parts about the call."""
    out, block, skipping = [], [], False

    def close():
        if block:
            out.extend(["", "```text", *textwrap.dedent("\n".join(block)).strip("\n").splitlines(), "```", ""])
            block.clear()

    for line in [*doc.splitlines(), ""]:
        if line and not line.startswith(" "):
            skipping = line in CALL
        if skipping:
            continue
        if line.startswith("    ") or (not line and block):
            block.append(line)
            continue
        close()
        out.append(line)
    close()
    return plain_roles(re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip())


def plain_roles(text):
    """Turn references of docstrings into code."""
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", re.sub(r"(?<!`)``(?!`)", "`", text))


def code(node, text):
    """Source of a function or class without its docstring."""
    lines = text.splitlines()
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
    doc = node.body[0]
    kept = lines[first : doc.lineno - 1] + lines[doc.end_lineno : node.end_lineno]
    return "\n".join(kept).rstrip()


def documented(tree):
    """Functions and classes with a docstring, by name."""
    return {n.name: n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(n)}


def needed(name, nodes):
    """List what a function uses of its own module, itself first, and what that uses."""
    found, waiting = [], [name]
    while waiting:
        here = waiting.pop(0)
        if here in found:
            continue
        found.append(here)
        waiting += [n.id for n in ast.walk(nodes[here]) if isinstance(n, ast.Name) and n.id in nodes]
    return found


def textbook_code(name, path):
    """Markdown of a textbook function: its equations, its code, and what it uses of its module."""
    text = (ROOT / path).read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = documented(tree)
    first, *others = needed(name, nodes)
    parts = [prose(ast.get_docstring(nodes[first])), f"```python\n{code(nodes[first], text)}\n```"]
    short = len(code(nodes[first], text).splitlines()) < 8
    for k, other in enumerate(others):
        inside = "\n\n".join([prose(ast.get_docstring(nodes[other])), f"```python\n{code(nodes[other], text)}\n```"])
        # where a function only hands over, what it hands to is open
        mark = "???+" if k == 0 and short else "???"
        parts.append(f'{mark} note "`{other}`"\n\n' + textwrap.indent(inside, "    "))
    parts.append(borrowed([first, *others], tree))
    return "\n\n".join(part for part in parts if part)


def borrowed(names, tree):
    """Functions of other modules of the textbook that these use, as Markdown, with the page of those that have one."""
    used = {n.id for name in names for n in ast.walk(documented(tree)[name]) if isinstance(n, ast.Name)}
    pages = {function: a.page for a in algorithms() for function, _ in a.functions}
    out = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module not in (None, "arithmetic"):
            said = [f"[`{n.name}`]({pages[n.name]})" if n.name in pages else f"`{n.name}`" for n in node.names if n.name in used]
            out += [f"{', '.join(said)} of `{node.module}.py`"] if said else []
    return f"It uses {'; '.join(out)}." if out else ""


def core_code(path):
    """Markdown of a file: its first comment or docstring, then all of it, folded."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".py"):
        said, language = prose(ast.get_docstring(ast.parse(text))), "python"
    else:
        comment = []
        for line in text.splitlines():
            if not line.startswith("//"):
                break
            comment.append(line[2:].removeprefix(" "))
        # equations are indented by two
        said, language = prose("\n".join(("  " + line) if line.startswith("  ") else line for line in comment)), "cpp"
    folded = textwrap.indent(f"```{language}\n{text.rstrip()}\n```", "    ")
    return f'{said}\n\n??? example "`{path}`, {len(text.splitlines())} lines"\n\n{folded}'


def algorithm_page(a):
    """Markdown of an algorithm."""
    call = a.setup + a.call
    parts = [
        f"# {a.name}",
        f"{a.group}: {a.computes}. Symbols are in the [glossary](../glossary.md), the others in the [overview](index.md).",
        f"```python\n{call}\n```",
    ]
    for path in a.files:
        parts += [f"## {'Fast' if path.startswith('core/') else 'Code'}: `{posixpath.basename(path)}`", core_code(path)]
    for name, path in a.functions:
        parts += [f"## Readable: `textbook.{name}`", f"From `{path}`.", textbook_code(name, path)]
    return "\n\n".join(parts) + "\n"


def module_page(module):
    """Markdown of a module of the textbook, function by function."""
    text = (ROOT / TEXTBOOK / f"{module}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, *rest = ast.get_docstring(tree).splitlines()
    parts = [
        f"# {title.rstrip('.')}",
        f"From `{TEXTBOOK}/{module}.py`; symbols are in the [glossary](../glossary.md).",
        prose("\n".join(rest).strip("\n")),
    ]
    for name, node in documented(tree).items():
        parts += [f"## {name}", prose(ast.get_docstring(node)), f"```python\n{code(node, text)}\n```"]
    return "\n\n".join(p for p in parts if p) + "\n"


# ---- tutorials --------------------------------------------------------------------------------------------------------------


def examples():
    """Files of the examples, in order."""
    return sorted((ROOT / "examples").glob("[0-9]*.py"))


def tutorial_title(path):
    """Title of an example, from its name."""
    words = [WORDS.get(word, word) for word in path.stem.split("_")[1:]]
    return " ".join([words[0][0].upper() + words[0][1:], *words[1:]])


def tutorial(path, printed):
    """Markdown of an example: comments at the margin after an empty line are text, the rest is code."""
    text = path.read_text(encoding="utf-8")
    doc = ast.parse(text).body[0]
    parts = [f"# {tutorial_title(path)}", ast.get_docstring(ast.parse(text))]
    block, said = [], []

    def close():
        if "\n".join(block).strip():
            parts.append("```python\n" + "\n".join(block).strip("\n") + "\n```")
        block.clear()

    for line in text.splitlines()[doc.end_lineno :]:
        starts = line.startswith("# ") and not line.startswith("# python ") and (said or not block or not block[-1].strip())
        if starts:
            if not said:
                close()
            said.append(line[2:])
            continue
        if said:
            words = " ".join(said)
            parts.append(words[0].upper() + words[1:] + ("" if words[-1] in ".:!?" else ":"))
            said = []
        block.append(line)
    close()
    if printed:
        parts += ["It prints, where this site was built:", "```text\n" + printed.rstrip() + "\n```"]
    parts.append(f"The file is `examples/{path.name}`; it checks its own result, and the tests run it.")
    return "\n\n".join(parts) + "\n"


def notebooks():
    """Files of the notebooks, in the order to read them."""
    return [ROOT / "examples" / "notebooks" / f"{name}.ipynb" for name in ("first_steps", "contact_and_loops", "learning_and_gradients")]


def notebook_page(path):
    """Markdown of a notebook: its cells, each with the outputs that the file holds."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", [])})
            if "image/png" in data:
                parts.append(f'<img alt="" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">')
            elif "text/html" in data:
                parts.append("".join(data["text/html"]))
            else:
                parts.append("```text\n" + "".join(data["text/plain"]).rstrip() + "\n```")
    parts.append(f"The notebook is `examples/notebooks/{path.name}`; the tests run it.")
    return "\n\n".join(parts) + "\n"


def notebook_title(path):
    """Heading of a notebook's first cell."""
    return "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]).splitlines()[0].lstrip("# ")


def tutorials_index():
    """Markdown of the list of examples and notebooks."""

    def shows(path):
        """Return the first paragraph of an example's docstring, in one line."""
        return " ".join(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).split("\n\n")[0].split())

    rows = [f"| [{tutorial_title(p)}]({p.stem}.md) | {shows(p)} |" for p in examples()]
    return "\n".join(
        [
            "# Tutorials",
            "",
            "Each is a file of `examples/`, under 80 lines, that ends by checking its own result.",
            "",
            "| | shows |",
            "|---|---|",
            *rows,
            "",
            "## Notebooks",
            "",
            *(f"- [{notebook_title(p)}]({p.stem}.md)" for p in notebooks()),
            "",
        ]
    )


def print_outputs():
    """Run the examples in this process, one after another, and write what they print as JSON."""
    told = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for path in examples():
            sys.argv = [str(path)]
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
                runpy.run_path(str(path), run_name="__main__")
            told[path.stem] = out.getvalue()
        os.chdir(ROOT)
    json.dump(told, sys.stdout)


def outputs():
    """Run the examples for what they print, by name; nothing where the package is not installed or DELASSUS_DOCS_RUN is 0."""
    if os.environ.get("DELASSUS_DOCS_RUN") == "0":
        return {}
    if subprocess.run([sys.executable, "-c", "import delassus"], capture_output=True, cwd=tempfile.gettempdir(), check=False).returncode:
        log.info("delassus is not installed: tutorials without what they print")
        return {}
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    if done.returncode:
        log.warning("an example fails: %s", done.stderr.strip().splitlines()[-1])
        return {}
    return json.loads(done.stdout)


# ---- API --------------------------------------------------------------------------------------------------------------------


def api():
    """Public names by room, in the order of the package's imports; then the modules that are public themselves."""
    tree = ast.parse((ROOT / "src/delassus/__init__.py").read_text(encoding="utf-8"))
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level == 1 and not (n.module or "").startswith("_")]
    modules = [alias.name for n in imports if not n.module for alias in n.names]
    rooms = {}
    for n in imports:
        if n.module:
            rooms.setdefault(n.module.split(".")[0], []).extend(alias.name for alias in n.names)
    for room, names in rooms.items():
        front = ROOT / f"src/delassus/{room}/__init__.py"
        inside = ast.parse(front.read_text(encoding="utf-8")).body if front.exists() else []
        parts = {alias.name for n in inside if isinstance(n, ast.ImportFrom) and not n.module for alias in n.names}
        modules += [f"{room}.{name}" for name in names if name in parts]
        rooms[room] = [name for name in names if name not in parts]
    pages = {room: [f"delassus.{room}.{name}" for name in names] for room, names in rooms.items()}
    return pages, [*modules, "gym"]


def api_page(room, names):
    """Markdown of a room's names."""
    return "\n".join(
        [
            f"# {room}",
            "",
            f"`import delassus as dl`: all names of this page are `dl.NAME`. What they are for: [{room}](../{room}.md).",
            "",
            *(f"::: {n}\n" for n in names),
        ]
    )


def api_module_page(module):
    """Markdown of a public module."""
    short = module.split(".")[-1]
    return f"# {short}\n\n::: delassus.{module}\n    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"


# ---- hooks ------------------------------------------------------------------------------------------------------------------


def generated():
    """Pages that are made here: place on the site to Markdown, and where in the repository their links start."""
    pages = {to: ((ROOT / path).read_text(encoding="utf-8"), posixpath.dirname(path)) for path, to in ELSEWHERE.items()}
    printed = outputs()
    pages["tutorials/index.md"] = (tutorials_index(), None)
    for path in examples():
        pages[f"tutorials/{path.stem}.md"] = (tutorial(path, printed.get(path.stem, "")), None)
    for path in notebooks():
        pages[f"tutorials/{path.stem}.md"] = (notebook_page(path), None)
    for a in algorithms():
        pages[f"algorithms/{a.page}"] = (algorithm_page(a), None)
    for module in ("robot", "rows"):
        pages[f"algorithms/{module}.md"] = (module_page(module), None)
    rooms, modules = api()
    for room, names in rooms.items():
        pages[f"api/{room}.md"] = (api_page(room, names), None)
    for module in modules:
        pages[f"api/{module.split('.')[-1]}.md"] = (api_module_page(module), None)
    return pages


def site_page(path):
    """Page of a file or folder of the repository, or None."""
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    if path == "examples":
        return "tutorials/index.md"
    if path.startswith("examples/") and path.endswith(".py"):
        return f"tutorials/{Path(path).stem}.md"
    if path in (f"{TEXTBOOK}/robot.py", f"{TEXTBOOK}/rows.py"):
        return f"algorithms/{Path(path).stem}.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else None


LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def relink(markdown, folder, page):
    """Turn links between files of the repository into links between pages."""

    def turn(match):
        image, text, to = match.groups()
        path, hash_, anchor = to.partition("#")
        if not path or "://" in to:
            return match[0]
        there = posixpath.normpath(posixpath.join(folder, path))
        if not (ROOT / there).exists():
            log.warning("%s links to %s, which is not in the repository", page, to)
            return match[0]
        target = site_page(there)
        if target is None:
            return text
        return f"{image}[{text}]({posixpath.relpath(target, posixpath.dirname(page) or '.')}{hash_}{anchor})"

    parts = re.split(r"(^ *```.*?^ *```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if k % 2 else LINK.sub(turn, part) for k, part in enumerate(parts))


PAGES: dict[str, tuple[str, str | None]] = {}


def on_config(config):
    """Make the pages, and give them their places."""
    PAGES.clear()
    PAGES.update(generated())
    groups: dict[str, list[str]] = {}
    for a in algorithms():
        groups.setdefault(a.group, []).append(f"algorithms/{a.page}")
    rooms, modules = api()
    places = {
        "Tutorials": ["tutorials/index.md", *(f"tutorials/{p.stem}.md" for p in (*notebooks(), *examples()))],
        "Algorithms": [
            "algorithms/index.md",
            *({g: pages} for g, pages in groups.items()),
            {"What they stand on": ["algorithms/robot.md", "algorithms/rows.md"]},
        ],
        "API": [*(f"api/{room}.md" for room in rooms), *(f"api/{m.split('.')[-1]}.md" for m in modules)],
    }
    config.nav = [{name: places.get(name, inside) for name, inside in entry.items()} for entry in config.nav]
    return config


def on_files(files, config):
    """Add the pages."""
    from mkdocs.structure.files import File

    for to, (markdown, _) in PAGES.items():
        files.append(File.generated(config, to, content=markdown))
    return files


def on_page_markdown(markdown, page, config, files):
    """Relink what is a file of the repository; the overview of algorithms leads to their pages."""
    uri = page.file.src_uri
    folder = PAGES[uri][1] if uri in PAGES else posixpath.join("docs", posixpath.dirname(uri))
    if folder is not None:
        markdown = relink(markdown, folder, uri)
    if uri == "algorithms/index.md":
        for a in algorithms():
            markdown = markdown.replace(f"| {a.name} |", f"| [{a.name}]({a.page}) |", 1)
    return markdown


def on_page_content(html, page, config, files):
    """Turn references that docstrings write for another tool into code, and LaTeX into MathML, which browsers draw without a script."""
    from latex2mathml.converter import convert

    def equation(match):
        latex, block = unescape(match[2]), match[1] == "div"
        return convert(latex.strip()[2:-2].strip(), display="block" if block else "inline")

    html = re.sub(r'<(div|span) class="arithmatex">(.*?)</\1>', equation, html, flags=re.DOTALL)
    return re.sub(r":\w+:<code>~?", "<code>", html)


if __name__ == "__main__":
    print_outputs()
