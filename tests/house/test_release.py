"""The version stands in one place, the changelog has the form of keepachangelog.com, and a tag that differs is refused."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import delassus as dl

ROOT = Path(__file__).resolve().parents[2]
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def version(folder, *words):
    return subprocess.run([sys.executable, str(folder / "tools" / "version"), *words], capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path):
    """The files that name the version, in a folder of their own."""
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "tools/version"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_all_files_name_the_installed_version():
    done = version(ROOT, "--tag", f"v{dl.__version__}")
    assert done.returncode == 0, done.stdout
    assert done.stdout.strip() == f"pyproject.toml: {dl.__version__}"


def test_what_differs_is_told(copy):
    assert version(copy).returncode == 0
    wrong = version(copy, "--tag", "v9.9.9")
    assert wrong.returncode == 1
    assert "tag v9.9.9" in wrong.stdout
    assert version(copy, "--set", "9.9.9").returncode == 0
    undated = version(copy, "--tag", "v9.9.9")
    assert undated.returncode == 1
    assert "CHANGELOG.md: no section [9.9.9]" in undated.stdout
    (copy / "CITATION.cff").write_text((copy / "CITATION.cff").read_text().replace("version: 9.9.9", "version: 9.9.8"))
    other = version(copy)
    assert other.returncode == 1
    assert "CITATION.cff: 9.9.8, and not 9.9.9" in other.stdout
    assert version(copy, "--set", "next").returncode == 1


def test_notes_of_a_release_are_its_section_alone():
    done = version(ROOT, "--notes")
    assert done.returncode == 0
    assert "### Added" in done.stdout
    assert "## [" not in done.stdout


def test_changelog_has_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert sections[0] == "[Unreleased]"
    dates = [re.fullmatch(r"\[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d)", section) for section in sections[1:]]
    assert all(dates)
    assert [d[1] for d in dates] == sorted((d[1] for d in dates), reverse=True)
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", section, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds], section.splitlines()[0]
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(lines) > 50
    assert len(set(lines)) == len(lines)


def test_matrix_lists_this_python():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "matrix"), "--list"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"python-{sys.version_info[0]}.{sys.version_info[1]}" in done.stdout
    assert {"oldest", "dispatch"} <= set(done.stdout.split())


def test_matrix_refuses_what_is_not_there():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "matrix"), "--only", "gcc-1"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "not on this machine: gcc-1" in done.stderr
