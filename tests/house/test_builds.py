"""Builds of the core: each runs only where it can, the fastest is chosen, and its file shows nothing but how it is imported."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import delassus as dl
from delassus import _builds, _core, _cpu
from delassus._builds import Build, choose
from delassus.cli import app
from delassus.errors import CpuError

ROOT = Path(__file__).parents[2]
PACKAGE = Path(_core.__file__).parent

# what the levels ask for beyond the first x86-64 processors (psABI), of what compilers use by themselves
V2 = frozenset({"sse3", "ssse3", "sse4_1", "sse4_2", "popcnt"})
V3 = V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS = [Build("x86-64-v2", V2), Build("x86-64-v3", V3), Build("x86-64-v4", V4)]
NATIVE = [Build("native", V4 | {"avx512vnni"})]
CORE_2 = frozenset({"sse3", "ssse3"})
NEHALEM = V2
SANDY_BRIDGE = V2 | {"avx"}
HASWELL = V3
ZEN_3 = V3 | {"sse4a", "adx"}
KNIGHTS_LANDING = V3 | {"avx512f", "avx512cd", "avx512er"}
SKYLAKE_X = V4 | {"adx"}


@pytest.mark.parametrize(
    ("cpu", "level"),
    [(NEHALEM, 2), (SANDY_BRIDGE, 2), (HASWELL, 3), (ZEN_3, 3), (KNIGHTS_LANDING, 3), (SKYLAKE_X, 4), (SKYLAKE_X - {"avx512vl"}, 3)],
)
def test_fastest_build_that_the_cpu_can_run_is_chosen(cpu, level):
    assert choose(LEVELS, cpu, None).build.arch == f"x86-64-v{level}"


def test_older_cpu_than_any_build_is_refused_with_what_it_lacks_and_a_way_out():
    with pytest.raises(
        CpuError, match=r"x86-64-v2 or better: its code uses popcnt, sse4_1, sse4_2, which this CPU does not have.*pip install"
    ):
        choose(LEVELS, CORE_2, None)


def test_native_build_refuses_a_lesser_cpu_and_runs_on_its_own():
    assert choose(NATIVE, SKYLAKE_X | {"avx512vnni", "gfni"}, None).build == NATIVE[0]
    with pytest.raises(CpuError, match=r"another machine: its code uses avx512vnni, which.*--no-cache-dir.*DELASSUS_ARCH=dispatch"):
        choose(NATIVE, SKYLAKE_X, None)
    with pytest.raises(ImportError, match="avx512bw, avx512cd, avx512dq, avx512f, avx512vl, avx512vnni"):
        choose(NATIVE, HASWELL, None)


def test_variable_names_the_build():
    for build in LEVELS:
        found = choose(LEVELS, SKYLAKE_X, build.arch)
        assert found.build == build
        assert "DELASSUS_ARCH" in found.reason
    assert choose(LEVELS, SKYLAKE_X, "").build.arch == "x86-64-v4"  # set to nothing is not set


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("x86-64-v4", r"DELASSUS_ARCH=x86-64-v4: the code of this build uses avx512bw.*does not have.*one of: x86-64-v2, x86-64-v3\."),
        ("native", r"DELASSUS_ARCH: expected an installed build \(x86-64-v2, x86-64-v3, x86-64-v4\), got 'native'.*one of"),
        ("v3", "got 'v3'"),
    ],
)
def test_variable_with_a_build_that_is_not_there_or_cannot_run_is_refused(wanted, said):
    with pytest.raises(CpuError, match=said):
        choose(LEVELS, HASWELL, wanted)


def in_new_process(code, emulator=(), **variables):
    env = {k: v for k, v in os.environ.items() if k != _builds.VARIABLE} | variables
    return subprocess.run([*emulator, sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=env)


def test_import_obeys_the_variable():
    for build in _builds.installed():
        said = in_new_process("import delassus._core as c; print(c.__file__)", DELASSUS_ARCH=build.arch)
        if build.features <= _builds.cpu_features():
            assert Path(said.stdout.strip()).name.startswith(f"{build.module}."), said.stderr
        else:
            assert "CpuError" in said.stderr
    said = in_new_process("import delassus", DELASSUS_ARCH="pdp-11")
    assert said.returncode == 1
    assert "got 'pdp-11'" in said.stderr.splitlines()[-1]


@pytest.mark.skipif(not shutil.which("qemu-x86_64-static"), reason="no qemu-user")
@pytest.mark.skipif(_cpu.kind != "x86-64", reason="processors of another kind")
@pytest.mark.parametrize("cpu", ["core2duo", "Nehalem", "SandyBridge", "Haswell"])
def test_lesser_cpu_gets_a_build_that_it_can_run_or_a_sentence(cpu):
    """Under an emulator that has the instructions of that processor only: what is wrong ends with an illegal instruction."""
    has = {"core2duo": CORE_2, "Nehalem": NEHALEM, "SandyBridge": SANDY_BRIDGE, "Haswell": HASWELL}[cpu]
    code = "import delassus, delassus._core as c; w = c.Lemke(3); print(c.__file__)"
    said = in_new_process(code, ["qemu-x86_64-static", "-cpu", cpu])
    usable = [b for b in _builds.installed() if b.features <= has]
    if usable:
        assert Path(said.stdout.strip()).name.startswith(usable[-1].module), said.stderr
    else:
        assert said.returncode == 1
        assert "CpuError: delassus was compiled for" in said.stderr.splitlines()[-1]


@pytest.mark.skipif(_cpu.kind != "x86-64" or not Path("/proc/cpuinfo").exists(), reason="needs /proc/cpuinfo of an x86-64")
def test_features_are_those_that_the_kernel_lists():
    flags = re.search(r"^flags\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split()
    other_names = {"pni": "sse3", "abm": "lzcnt", "bmi1": "bmi"}
    listed = {other_names.get(flag, flag).replace("_", "") for flag in flags}
    source = (ROOT / "core" / "spatial" / "target.h").read_text()
    known = {name.replace("_", "") for name in re.findall(r'\{"(\w+)", DELASSUS_HAS\(__(?!ARM)', source)}
    assert len(known) > 30
    assert {name.replace("_", "") for name in _cpu.features()} == listed & known


def test_every_build_is_listed_with_features_and_its_file_is_there():
    builds = _builds.installed()
    assert builds
    for build in builds:
        assert len(list(PACKAGE.glob(f"{build.module}.*so"))) == 1
        if build.arch in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
            assert build.features == {b.arch: b.features for b in LEVELS}[build.arch]
    assert _builds.chosen().build.features <= _builds.cpu_features()
    assert _builds.chosen().build.features <= set(_cpu.features())


def test_chosen_build_is_the_module():
    assert _core.__name__ == "delassus._core"
    assert sys.modules["delassus._core"] is _core is dl._core
    assert Path(_core.__file__).name.startswith(_builds.chosen().build.module)
    model = dl.load("iiwa")
    assert type(model._native).__module__ == "delassus._core"
    assert pickle.loads(pickle.dumps(model)).nv == model.nv
    said = in_new_process("from delassus._core import Lemke; import delassus._core as c; assert c.Lemke is Lemke; print('same')")
    assert said.stdout.split() == ["same"], said.stderr


def test_info_shows_builds_and_choice(tmp_path):
    said = CliRunner().invoke(app, ["info", "--build", "--json", str(tmp_path / "build.json")], env={"COLUMNS": "200"})
    assert said.exit_code == 0, said.output
    facts = json.loads((tmp_path / "build.json").read_text())
    chosen = _builds.chosen()
    assert facts["used"] == chosen.build.arch
    assert facts["reason"] == chosen.reason
    assert facts["file"] == _core.__file__
    assert {b["name"]: set(b["features"]) for b in facts["builds"]} == {b.arch: b.features for b in _builds.installed()}
    assert [b["name"] for b in facts["builds"] if b["used"]] == [chosen.build.arch]
    for text in (chosen.build.arch, chosen.reason, _core.compiler):
        assert text in said.output


@pytest.mark.parametrize("arguments", [["info"], ["info", "iiwa", "--build"]])
def test_info_takes_a_robot_or_the_build(arguments):
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 1
    assert "expected a robot, a scene or --build" in str(said.exception)


@pytest.mark.skipif(not (shutil.which("nm") and shutil.which("readelf")), reason="no binutils")
@pytest.mark.skipif(sys.platform != "linux", reason="ELF files only")
def test_modules_show_their_entry_only_and_need_no_text_relocations():
    modules = sorted(PACKAGE.glob("_*.so"))
    assert len(modules) == len(_builds.installed()) + 1
    for path in modules:
        shown = subprocess.run(["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True).stdout.split("\n")
        assert [line.split()[-1] for line in shown if line] == ["PyInit__cpu" if path.name.startswith("_cpu.") else "PyInit__core"]
        dynamic = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True).stdout
        assert "PyInit" in shown[0]
        assert "TEXTREL" not in dynamic


def test_what_depends_on_the_processor_is_in_one_file():
    for path in sorted((ROOT / "core").rglob("*.h")) + sorted((ROOT / "core").rglob("*.cpp")):
        found = re.search(r"immintrin|_mm\d*_|__builtin_ia32|__(AVX|SSE|x86_64|aarch64|ARM)|cpuid|arm_neon", path.read_text())
        assert found is None or path.relative_to(ROOT / "core").as_posix() == "spatial/target.h", f"{path}: {found[0]}"
