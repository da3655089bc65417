"""What the pages show is run: every block of Python, what it prints, and every command that a test can run."""

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import runpy
import shlex
import sys
import warnings
from pathlib import Path

import matplotlib
import pytest

import delassus as dl
from delassus.cli import app, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = {
    "casadi": "casadi",
    "delassus.gym": "gymnasium",
    "delassus.jax": "jax",
    "delassus.torch": "torch",
    "pinocchio": "pinocchio",
    "example_robot_data": "example_robot_data",
    "dl.View": "viser",
    "dl.Study": "pyarrow",
}
# Commands that no test runs, and why: by how they begin.
NOT_RUN = {
    "pip install": "installs; what follows `&&` has tests of its own (test_examples.py, all of pytest)",
    "pytest -m exhaustive": "minutes; .ci/run runs it",
    "ruff check": "test_clean.py",
    "tools/stubs": "test_stubs.py",
    "tools/tidy": "reads the core, minutes",
    "pre-commit install": "changes the repository",
    "mkdocs": "test_site.py",
    "pip wheel": "compiles the core three times; tools/wheel does",
    "DELASSUS_ARCH=": "test_builds.py",
    "tools/sanitize": "compiles the core anew, minutes",
    "tools/core_tests": "compiles the core for every compiler, minutes each",
    "tools/wheel": "compiles the core three times, minutes",
    "tools/zoo": "needs packages of models, minutes; test_zoo.py runs it on a folder",
    "tools/matrix": "compiles the core for every compiler, minutes each",
    "tools/version": "test_release.py",
    "tools/oldest": "installs old versions of all dependencies, minutes",
    "cmake ": "compiles; tests/native builds the project, and the C++ of the page",
    "pkg-config": "tests/native asks it",
    "benchmarks/": "compiles Pinocchio's headers, minutes",
    "delassus demo": "drops robots for 1.5 s; test_examples.py runs it for 0.1 s",
    "delassus reproduce": "minutes; tests/reproduce",
}

# What a reader has and a test has not: a robot and a scene of their own.
ROBOT = """<mujoco model="robot"><worldbody><geom type="plane" size="2 2 1"/><body name="arm" pos="0 0 1"><joint name="shoulder" axis="0 1 0"/>
<geom name="upper" type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/><body name="hand" pos="0.4 0 0"><joint name="elbow" axis="0 1 0"/>
<geom name="lower" type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/></body></body></worldbody>
<actuator><motor joint="shoulder"/></actuator></mujoco>"""
URDF = """<robot name="robot"><link name="base"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
<link name="tip"><inertial><origin xyz="0 0 0.2"/><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="1" velocity="1"/></joint></robot>"""


def named(path):
    return str(path.relative_to(ROOT))


def blocks(path):
    """Language, line, text of every block, and where it starts and ends."""
    text = path.read_text(encoding="utf-8")
    return [(m[1], text.count("\n", 0, m.start()) + 2, m[2], m.start(), m.end()) for m in FENCE.finditer(text)], text


def pages_with(*languages):
    return [path for path in PAGES if any(block[0] in languages for block in blocks(path)[0])]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the files that pages speak of; views are opened and closed, not waited for."""
    (tmp_path / "robot.xml").write_text(ROBOT)
    (tmp_path / "robot.urdf").write_text(URDF)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dl.View, "wait", lambda view: None)
    monkeypatch.setattr("webbrowser.open", lambda *_, **__: True)
    matplotlib.use("Agg")
    return tmp_path


def run(block, line, page, space):
    """What a block prints; an error in it names the page and its line."""
    compiled = compile("\n" * (line - 1) + block, page, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        exec(compiled, space)
    return out.getvalue()


def without_missing(text):
    """Skip a page of which an extra is not installed."""
    for word, module in NEEDS.items():
        if word in text:
            pytest.importorskip(module)


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_block_says_what_it_is(path):
    text = path.read_text(encoding="utf-8")
    found, _ = blocks(path)
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) == 2 * len(found)
    assert {language for language, *_ in found} <= {"python", "bash", "text", "cpp", "cmake"}


def commands(block, line):
    """Lines and commands of a block."""
    for k, command in enumerate(block.splitlines()):
        if command.strip() and not command.startswith("#"):
            yield line + k, command


@pytest.mark.parametrize("path", pages_with("python", "bash"), ids=named)
def test_blocks_of_the_page_run_in_order_and_print_what_it_says(path, desk, monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", "120")
    found, text = blocks(path)
    without_missing("".join(block for language, _, block, *_ in found if language == "python"))
    space, printed, end = {"__name__": "page"}, None, 0
    for language, line, block, start, stop in found:
        if language == "python":
            printed = run(block, line, named(path), space)
        elif language == "text" and printed is not None and not text[end:start].strip():
            assert [said.rstrip() for said in printed.strip("\n").splitlines()] == [
                said.rstrip() for said in block.strip("\n").splitlines()
            ]
        elif language == "bash":
            for at, command in commands(block, line):
                if any(command.startswith(beginning) for beginning in NOT_RUN):
                    continue
                words = shlex.split(command, comments=True)
                assert words[0] == "delassus", f"{named(path)}:{at}: {command}"
                monkeypatch.setattr(sys, "argv", words)
                with pytest.raises(SystemExit) as ended:
                    main()
                assert ended.value.code in (0, None), f"{named(path)}:{at}: {command}\n{capfd.readouterr()}"
        end = stop


def test_every_reason_not_to_run_a_command_is_one_of_the_pages():
    told = [
        command
        for path in PAGES
        for language, line, block, *_ in blocks(path)[0]
        if language == "bash"
        for _, command in commands(block, line)
    ]
    commands_there_are = {command.name or command.callback.__name__ for command in app.registered_commands}
    reasons = [b for b in NOT_RUN if not b.startswith("delassus ") or b.split()[1] in commands_there_are]
    assert [b for b in reasons if not any(b in command for command in told)] == []


# ---- pages that are made when the site is built -----------------------------------------------------------------------------

SITE = runpy.run_path(str(ROOT / "tools" / "docs_site.py"))
ALGORITHMS = SITE["algorithms"]()


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_call_of_an_algorithm_runs(algorithm, desk):
    run(algorithm.setup + algorithm.call, 1, algorithm.page, {"__name__": "page"})


def test_every_method_has_its_algorithm():
    calls = "\n".join(a.call for a in ALGORITHMS)
    wanted = {
        "delassus_matrix": dl.operators.explicit.MATRIX_METHODS,
        "damped_delassus_inverse": dl.operators.explicit.INVERSE_METHODS,
        "constrained_dynamics": dl.solvers.dynamics._METHODS,
        "solve_contacts": dl.solvers.contacts._METHODS,
    }
    missing = [(f, m) for f, methods in wanted.items() for m in methods if m != "auto" and not re.search(rf'{f}\(.*method="{m}"', calls)]
    assert missing == []
    known = {function for a in ALGORITHMS for function, _ in a.functions}
    assert {getattr(a.run, "func", a.run).__name__ for a in dl.textbook.ALGORITHMS.values()} <= known


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_algorithm_shows_equations_and_code(algorithm):
    page = SITE["algorithm_page"](algorithm)
    assert algorithm.files
    for path in algorithm.files:
        assert (ROOT / path).read_text(encoding="utf-8").strip().splitlines()[-1] in page
    for function, _ in algorithm.functions:
        assert re.search(rf"^def {function}\(", page, re.MULTILINE)
    assert any(sign in page for sign in "=←⊥")


MODULES = [
    m.name
    for m in pkgutil.walk_packages(dl.__path__, "delassus.")
    if m.name not in ("delassus.jax", "delassus.torch") and not m.name.startswith(("delassus._core", "delassus.gym"))
]


def test_examples_of_the_docstrings_hold(desk):
    pytest.importorskip("casadi")
    done = {name: doctest.testmod(importlib.import_module(name)) for name in MODULES}
    assert sum(d.attempted for d in done.values()) > 80
    assert {name for name, d in done.items() if d.failed} == set()
