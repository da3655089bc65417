"""The docs site builds without a warning, loads nothing from elsewhere, and no link of the repository's pages leads nowhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *(p for folder in ("docs", "benchmarks", "src") for p in sorted((ROOT / folder).rglob("*.md")))]


def heading_anchors(text):
    """Anchors of headings, as GitHub and mkdocs make them."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", head.lower()).strip()) for head in heads}


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_of_the_page_lead_somewhere(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for to in re.findall(r"\]\(([^()\s]+)\)", text):
        place, _, anchor = to.partition("#")
        if "://" in to:
            continue
        target = (path.parent / place).resolve() if place else path
        assert target.exists(), to
        assert not anchor or anchor in heading_anchors(target.read_text(encoding="utf-8")), to


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_that_the_page_names_are_there(path):
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:core|bindings|src|tests|tools|benchmarks|examples|docs)/[\w./-]+\.\w+)`", text):
        assert (ROOT / name).exists(), name


def test_figures_of_the_front_page_are_those_of_the_benchmarks():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    speed = "\n".join(readme.split(f"\n## {part}\n")[1].split("\n## ")[0] for part in ("Why", "Speed"))
    measured = set(
        re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-\d+)?(?![\w.]*\d)", (ROOT / "benchmarks/README.md").read_text(encoding="utf-8"))
    )
    told = re.findall(r"(?<![\w.])(\d+\.\d+|\de-\d+)(?![\w.]*\d)", speed.replace("Pinocchio 4.1", ""))
    assert len(told) > 40
    assert [figure for figure in told if figure not in measured] == []


# what a page asks a browser to load
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\ssrc=["']?([^"'\s>]+)|<link\b[^>]*?\shref=["']?([^"'\s>]+)"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    pytest.importorskip("latex2mathml")
    folder = tmp_path_factory.mktemp("site")
    # tutorials without what they print: test_examples.py runs the examples
    environment = os.environ | {"DELASSUS_DOCS_RUN": "0", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_site_has_its_pages(site):
    for page in ("index", "conventions", "benchmarks", "changelog", "contributing", "limitations", "api/operators", "algorithms/pv-osimr"):
        assert (site / f"{page}.html").stat().st_size > 5_000
    for example in (ROOT / "examples").glob("[0-9]*.py"):
        assert (site / "tutorials" / f"{example.stem}.html").stat().st_size > 5_000
    for notebook in (ROOT / "examples" / "notebooks").glob("*.ipynb"):
        page = (site / "tutorials" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        assert "<table" in page or "data:image/png" in page
    assert "matrix" in (site / "search" / "search_index.json").read_text()


def test_site_draws_equations_without_a_script(site):
    front = (site / "index.html").read_text(encoding="utf-8")
    assert front.count("<math ") > 4
    assert "<msup><mi>M</mi>" in front
    for page in site.rglob("*.html"):
        assert 'class="arithmatex"' not in page.read_text(encoding="utf-8")


def test_site_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    for page in pages:
        found = [source or link for source, link in LOADED.findall(page.read_text(encoding="utf-8"))]
        assert len(found) > 4
        assert [loaded for loaded in found if re.match(r"(\w+:)?//", loaded)] == []
    for style in site.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//", style.read_text(encoding="utf-8"))
