"""The C++ package as its users have it: a fresh CMake project finds it, links, runs, gives the bits of Python, and takes no memory where it says so."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import delassus as dl

ROOT = Path(__file__).parents[2]
SCENES = ("go2-standing", "cassie-loops", "box-stack", "no-constraints")
STATUSES = {"solved": 0, "infeasible_least_squares": 1, "iteration_limit": 2, "stalled": 3, "redundant": 4}
OUTCOMES = {"solved": 0, "iteration_limit": 1, "stalled": 2, "infeasible": 3, "approximate": 4}


def run(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def built(source, folder):
    """A project of a user, configured with nothing but where the package is."""
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("needs CMake and a C++ compiler")
    run("cmake", "-S", source, "-B", folder, f"-Ddelassus_DIR={dl.get_cmake_dir()}")
    run("cmake", "--build", folder, "-j2")
    return folder


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return built(ROOT / "tests" / "native", tmp_path_factory.mktemp("native") / "build")


@pytest.fixture(scope="session")
def examples(tmp_path_factory):
    # sources in a folder of their own: nothing of the repository is in reach
    folder = tmp_path_factory.mktemp("fresh")
    shutil.copytree(ROOT / "examples" / "cpp", folder / "project")
    return built(folder / "project", folder / "build")


def library():
    (file,) = (f for f in Path(dl.get_cmake_dir()).parents[1].glob("libdelassus.*") if not f.is_symlink())
    return file


# ---- what is shipped --------------------------------------------------------------------------------------------------


def test_package_has_the_version_of_python():
    text = (Path(dl.get_include()) / "delassus" / "version.hpp").read_text()
    assert re.search(r'DELASSUS_VERSION "([^"]+)"', text).group(1) == dl.__version__


def test_headers_include_the_standard_library_and_each_other_only():
    headers = sorted(Path(dl.get_include()).rglob("*.hpp"))
    assert {h.name for h in headers} >= {"delassus.hpp", "model.hpp", "operator.hpp", "world.hpp"}
    own = {f"delassus/{h.name}" for h in headers}
    for header in headers:
        text = header.read_text()
        assert set(re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)) <= own
        assert all("/" not in name for name in re.findall(r"^#include <([^>]+)>", text, re.MULTILINE))


def test_library_exports_the_surface_only():
    if shutil.which("nm") is None:
        pytest.skip("needs nm")
    lines = run("nm", "-D", "-C", "--defined-only", library()).splitlines()
    names = [line.split(maxsplit=2)[2] for line in lines if line]
    assert len(names) > 100
    alien = [name for name in names if not re.match(r"((typeinfo|typeinfo name|vtable) for )?delassus::v0::", name)]
    assert alien == []
    dynamic = run("readelf", "-d", library())
    assert "TEXTREL" not in dynamic
    assert re.search(r"SONAME.*\[libdelassus\.so\.\d+(\.\d+)?\]", dynamic)


# ---- examples ---------------------------------------------------------------------------------------------------------


def test_box_slides_by_coulombs_law(examples):
    assert run(examples / "box_on_a_slope").count("Coulomb") == 4


def test_real_time_loop_takes_no_memory(examples, tmp_path):
    assert "0 requests for memory" in run(examples / "real_time_loop")
    dl.save_model(tmp_path / "cassie.delassus", dl.load("cassie"))
    said = run(examples / "real_time_loop", tmp_path / "cassie.delassus", "home")
    assert "32 velocities, 12 rows" in said
    assert "0 requests for memory" in said


def test_program_of_the_page_runs(tmp_path):
    """Blocks of docs/cpp.md, one after the other, are a program that the project of the page builds."""
    text = (ROOT / "docs" / "cpp.md").read_text(encoding="utf-8")
    found = {
        language: re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for language in ("cpp", "cmake", "python")
    }
    includes = "#include <cstdio>\n" + "".join(re.findall(r"^#include .*\n", "".join(found["cpp"]), re.MULTILINE))
    body = re.sub(r"^#include .*\n", "", "\n".join(found["cpp"]), flags=re.MULTILINE)
    end = 'std::printf("%d %d %d\\n", bool(report), bool(contact), world.q()[2] < 0.11);'
    (tmp_path / "my_robot.cpp").write_text(f"{includes}int main() {{\n{body}\n{end}\n}}\n")
    (tmp_path / "CMakeLists.txt").write_text(found["cmake"][0])
    program = built(tmp_path, tmp_path / "build") / "my_robot"
    subprocess.run([sys.executable, "-c", found["python"][0]], cwd=tmp_path, check=True)
    assert run(program, cwd=tmp_path).split() == ["1", "1", "1"]


# ---- the same bits ----------------------------------------------------------------------------------------------------


def scene(name):
    if name == "no-constraints":
        model = dl.load("iiwa")
        return model, [], model.random(3)
    if name == "cassie-loops":
        model = dl.load("cassie")
        gains = {"baumgarte": (100.0, 20.0)}
        closed = [dl.constraints.from_loop(model, loop, **gains) for loop in model.loops]
        return model, [*closed, dl.PointContact(model, "left-foot", point=(0.1, 0.0, 0.0), friction=0.6)], model.keyframes["home"]
    s = dl.scenes.load({"go2-standing": "go2-standing", "box-stack": "box-stack"}[name])
    return s.model, list(s.constraints), s.q


def inputs(model, constraints, q):
    rng = np.random.default_rng(5)
    m = sum(c.rows for c in constraints)
    tau, a = rng.standard_normal((2, model.nv))
    v = 0.1 * rng.standard_normal(model.nv)
    external = rng.standard_normal((model.nbody, 6))
    x = rng.standard_normal(m)
    G = dl.DelassusOperator(model, constraints)
    G.update(q)
    g = G.jacobian @ (v + 2e-3 * dl.forward_dynamics(model, q, v, tau))
    damping = 1e-6 * rng.uniform(1, 2, m)
    return dict(q=np.asarray(q), v=v, tau=tau, a=a, external=external, x=x, g=g, damping=damping)


def by_python(model, constraints, d):
    """Name and numbers of everything that probe.cpp writes, in its order."""
    q, v, tau, x = d["q"], d["v"], d["tau"], d["x"]
    yield "mass_matrix", dl.mass_matrix(model, q)
    yield "mass_matrix_inverse", dl.mass_matrix_inverse(model, q)
    yield "inverse_dynamics", dl.inverse_dynamics(model, q, v, d["a"], external_forces=d["external"])
    yield "forward_dynamics", dl.forward_dynamics(model, q, v, tau, external_forces=d["external"])
    yield "bias_forces", dl.bias_forces(model, q, v)
    yield "solve_mass_matrix", dl.solve_mass_matrix(model, q, tau)
    yield "body_placements", dl.body_placements(model, q)
    yield "point_jacobian", dl.frame_jacobian(model, q, dl.Frame("tip", model.body_names[-1], (0.1, 0.2, 0.3)))
    after = dl.integrate(model, q, v, 0.01)
    yield "integrate", after
    yield "difference", dl.difference(model, q, after)
    yield "error", dl.constraint_error(model, q, constraints)
    yield "velocity", dl.constraint_velocity(model, q, v, constraints)
    yield "bias", dl.constraint_bias(model, q, v, constraints)
    G = dl.DelassusOperator(model, constraints, damping=d["damping"])
    G.update(q)
    yield "apply", G @ x
    yield "to_matrix", G.to_matrix()
    yield "solve", G.solve(x)
    yield "unrefined", G.solve(x, refine=False)
    yield "jacobian", G.jacobian @ v
    yield "jacobian_transpose", G.jacobian.T @ x
    yield "mass_inverse", G.mass_inverse @ tau
    r = dl.constrained_dynamics(model, q, v, tau, constraints, external_forces=d["external"])
    yield "acceleration", r.acceleration
    yield "forces", r.forces
    yield "dynamics", [STATUSES[r.status], r.iterations, r.residuals.constraints, r.residuals.dynamics]
    s = dl.solve_contacts(G, d["g"], constraints)
    yield "contact forces", s.forces
    yield "contact velocities", s.velocities
    yield "contacts", [OUTCOMES[s.status], s.iterations, s.residuals.natural]


@pytest.fixture(scope="session")
def probed(programs, tmp_path_factory):
    """Both results of all scenes: scene → name → (of C++, of Python)."""
    folder, found = tmp_path_factory.mktemp("probe"), {}
    for name in SCENES:
        model, constraints, q = scene(name)
        d = inputs(model, constraints, q)
        dl.save_model(folder / "model", model, constraints)
        np.concatenate([np.ravel(x) for x in d.values()]).tofile(folder / "in")
        run(programs / "probe", folder / "model", folder / "in", folder / "out")
        numbers, at, found[name] = np.fromfile(folder / "out"), 0, {}
        for key, ours in by_python(model, constraints, d):
            wanted = np.ravel(np.asarray(ours, dtype=float))
            found[name][key] = numbers[at : at + wanted.size], wanted
            at += wanted.size
        assert at == numbers.size
    return found


@pytest.mark.parametrize("name", SCENES)
def test_cpp_gives_the_bits_of_python(probed, name):
    different = {
        key: float(np.abs(cpp - python).max())
        for key, (cpp, python) in probed[name].items()
        if cpp.tobytes() != (python + 0.0).tobytes() and not np.array_equal(cpp, python)
    }
    assert different == {}


@pytest.mark.parametrize("name", SCENES)
def test_cpp_agrees_with_dense_algebra(probed, name):
    """G, its damped inverse and the constrained motion against matrices of NumPy alone."""
    model, constraints, q = scene(name)
    d, cpp = inputs(model, constraints, q), {key: pair[0] for key, pair in probed[name].items()}
    m = d["x"].size
    J = np.array([dl.DelassusOperator.jacobian.fget(_updated(model, constraints, q)) @ e for e in np.eye(model.nv)]).reshape(model.nv, m).T
    M = cpp["mass_matrix"].reshape(model.nv, model.nv)
    G = J @ np.linalg.solve(M, J.T)
    size = np.abs(G).max(initial=1e-300)
    assert np.abs(cpp["to_matrix"].reshape(m, m) - G).max(initial=0.0) < 1e-9 * size
    np.testing.assert_allclose(cpp["mass_matrix_inverse"].reshape(M.shape) @ M, np.eye(model.nv), atol=1e-8)
    residual = G @ cpp["solve"] + d["damping"] * cpp["solve"] - d["x"]
    assert np.abs(residual).max(initial=0.0) < 1e-8 * (1 + size * np.abs(cpp["solve"]).max(initial=0.0))
    if name == "box-stack":
        return  # redundant contacts: forces are not unique
    # M a + h = τ + external + Jᵀ λ
    bias = dl.inverse_dynamics(model, q, d["v"], np.zeros(model.nv), external_forces=d["external"])
    force = M @ cpp["acceleration"] + bias - d["tau"] - J.T @ cpp["forces"]
    assert np.abs(force).max() < 1e-6 * (1 + np.abs(J.T @ cpp["forces"]).max() + np.abs(bias).max())


def _updated(model, constraints, q):
    G = dl.DelassusOperator(model, constraints)
    G.update(q)
    return G


def test_every_kind_of_constraint_is_that_of_python(programs, tmp_path):
    model = dl.load("cassie")
    rng = np.random.default_rng(2)
    q, v = dl.integrate(model, model.keyframes["home"], 0.1 * rng.standard_normal(model.nv), 1.0), rng.standard_normal(model.nv)
    b = (100.0, 20.0)
    K = [np.array([0.1 * k - 0.5 * t for k in range(12)]).reshape(2, 6) for t in range(2)]
    constraints = [
        dl.PointContact(model, "left-foot", point=(0.01, 0.02, 0.03), normal=(0.1, 0.2, 0.9)),
        dl.PointContact(model, "left-foot", other="right-foot", other_point=(0, 0.1, 0), normal=(0, -2, 0), friction=0.5, torsional_friction=0.02, baumgarte=b),
        dl.PointContact(model, "right-foot", point=(0.1, 0, 0), friction=0.5, torsional_friction=0.02, rolling_friction=0.001),
        dl.Connect(model, "left-shin", "right-shin", point=(0.1, 0, 0.2), baumgarte=b),
        dl.Connect(model, "left-shin", point=(0.1, 0, 0.2), other_point=(0.3, 0.2, 0.1), baumgarte=b),
        dl.Weld(model, "left-shin", "right-shin", point=(0.1, 0, 0.2), quaternion=(0.8, 0, 0.6, 0), other_quaternion=(0, 0.6, 0, 0.8), baumgarte=b),
        dl.Weld(model, "right-tarsus", point=(0.1, 0, 0.2)),
        dl.Distance(model, "left-shin", "right-shin", point=(0, 0, 0.1), length=0.4, baumgarte=b),
        dl.Hinge(model, "left-shin", "right-shin", axis=(1, 2, 3), point=(0.1, 0, 0), baumgarte=b),
        dl.Hinge(model, "left-shin", axis=(0, 0, 2), other_axis=(0, 1, 0)),
        dl.JointCoupling(model, "left-knee", "right-knee", polynomial=(0.1, 0.9, 0.2, 0, 0.3), baumgarte=b),
        dl.JointCoupling(model, "left-knee", polynomial=(-1, 0, 0, 0, 0), baumgarte=b),
        dl.JointFriction(model, "left-foot", 2.0),
        dl.JointLimit(model, "left-knee", baumgarte=b),
        dl.JointLimit(model, "left-knee", "upper", bound=0.3, baumgarte=b),
        dl.CenterOfMass(model, target=(0, 0.1, 0.9), baumgarte=b),
        dl.LinkConstraint(model, [("left-shin", K[0]), ("right-shin", K[1])], baumgarte=(0, 3)),
    ]  # fmt: skip
    dl.save_model(tmp_path / "model", model)
    np.concatenate([q, v]).tofile(tmp_path / "in")
    run(programs / "kinds", tmp_path / "model", tmp_path / "in", tmp_path / "out")
    numbers = np.fromfile(tmp_path / "out")
    m = sum(c.rows for c in constraints)
    G = dl.DelassusOperator(model, constraints)
    G.update(q)
    wanted = (
        dl.constraint_error(model, q, constraints), dl.constraint_velocity(model, q, v, constraints), dl.constraint_bias(model, q, v, constraints), G @ np.ones(m),
    )  # fmt: skip
    for k, python in enumerate(wanted):
        # axes and rotations are made by other means than NumPy's: rounding
        np.testing.assert_allclose(numbers[k * m : (k + 1) * m], python, rtol=1e-12, atol=1e-12 * np.abs(python).max())
    h, remade = numbers[4 * m :].reshape(2, model.nv)
    np.testing.assert_allclose(h, dl.bias_forces(model, q, np.zeros(model.nv)), rtol=0, atol=0)
    np.testing.assert_allclose(remade, h, rtol=1e-12, atol=1e-10)


# ---- worlds -----------------------------------------------------------------------------------------------------------

BOXES = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="9 9 1" friction="0.7"/>{}</worldbody></mujoco>"""
BOX = '<body name="box{0}" pos="{0} 0 0.3" quat="0.98 0.1 0.05 0.1630950643"><freejoint/><geom type="box" size=".1 .1 .1" friction="0.7" mass="{1}"/></body>'


def test_boxes_fall_as_in_python(programs, tmp_path):
    boxes = [BOX.format(k, k + 1) for k in range(2)]
    path = tmp_path / "boxes.xml"
    path.write_text(BOXES.format("".join(boxes)))
    sim = dl.Simulator(path)
    v = np.zeros(sim.model.nv)
    v[::6], v[4::6] = 0.5, 1.0
    sim.reset(v=v)
    dl.save_model(tmp_path / "model", sim.model)
    run(programs / "falling", "boxes", tmp_path / "model", tmp_path / "out")
    nq, nv = sim.model.nq, sim.model.nv
    cpp = np.fromfile(tmp_path / "out").reshape(600, nq + nv)
    for k in range(600):
        step = sim.step()
        assert step.status == "solved"
        # contacts are found by other means; where a box comes to rest on four corners their forces are not unique, and rounding chooses
        np.testing.assert_allclose(cpp[k], [*sim.q, *sim.v], rtol=0, atol=1e-6 if k < 160 else 0.02, err_msg=str(k))
    assert np.abs(cpp[160, :nq] - cpp[0, :nq]).max() > 0.1
    np.testing.assert_allclose(cpp[-1], [*sim.q, *sim.v], rtol=0, atol=1e-4)
    assert np.abs(cpp[-1, nq:]).max() < 1e-3


def test_loops_move_with_the_bits_of_python(programs, tmp_path):
    model = dl.scenes.four_bar()
    sim = dl.Simulator(model)
    dl.save_model(tmp_path / "model", model)
    run(programs / "falling", "loops", tmp_path / "model", tmp_path / "out")
    cpp = np.fromfile(tmp_path / "out").reshape(300, model.nq + model.nv)
    for k in range(300):
        sim.step(np.full(model.nv, 0.01))
        assert cpp[k].tolist() == [*sim.q, *sim.v], k
    assert np.abs(cpp[-1, : model.nq] - model.neutral()).max() > 0.01


# ---- ugly cases -------------------------------------------------------------------------------------------------------


def test_trouble_is_reported_and_leaves_objects_usable(programs, tmp_path):
    dl.save_model(tmp_path / "cassie", dl.load("cassie"))
    assert "all as it should be" in run(programs / "ugly", tmp_path / "cassie", tmp_path)


@pytest.mark.parametrize("name", ["go2-standing", "cassie-loops", "box-stack"])
def test_made_objects_take_no_memory(programs, tmp_path, name):
    model, constraints, _ = scene(name)
    dl.save_model(tmp_path / "model", model, constraints)
    counts = dict(line.split(",") for line in run(programs / "quiet", tmp_path / "model").splitlines())
    assert {k: n for k, n in counts.items() if k in ("inaccurate", "unsolved", "contacts without solution")}.keys() == {
        "inaccurate",
        "unsolved",
        "contacts without solution",
    }
    asked = {k: int(n) for k, n in counts.items() if k not in ("inaccurate", "unsolved", "contacts without solution")}
    assert len(asked) == 15
    assert {k: n for k, n in asked.items() if n} == {}


def test_names_of_any_kind_reach_cpp(programs, tmp_path):
    """Quotes, backslashes, blanks and other alphabets in names."""
    b = dl.ModelBuilder('a "model" \\ of mine')
    b.add_body('the "first"', mass=1.0, inertia=(1, 1, 1))
    b.add_joint('the "first"', "hinge", name="гнездо \\")
    dl.save_model(tmp_path / "model", b.build(), [])
    np.array([0.3, 0.1, 0.2, 0.4] + [0.0] * 12).tofile(tmp_path / "in")
    run(programs / "probe", tmp_path / "model", tmp_path / "in", tmp_path / "out")
    assert np.fromfile(tmp_path / "out")[0] == 1.0


def test_a_folder_that_is_not_there_is_a_typed_error(tmp_path):
    with pytest.raises(dl.errors.WriteError, match="save_model"):
        dl.save_model(tmp_path / "none" / "model", dl.load("iiwa"))


# ---- without Python -----------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive  # compiles the core
def test_installed_from_sources_without_python(tmp_path):
    for tool in ("cmake", "c++", "pkg-config"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    build, prefix = tmp_path / "build", tmp_path / "prefix"
    run(
        "cmake",
        "-S",
        ROOT,
        "-B",
        build,
        "-DDELASSUS_PYTHON=OFF",
        "-DDELASSUS_CORE_TESTS=ON",
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
        "-DCMAKE_INSTALL_LIBDIR=lib",
        "-DCMAKE_DISABLE_FIND_PACKAGE_Python=ON",
    )
    run("cmake", "--build", build, "-j2")
    said = run(build / "core_tests")
    assert re.search(r"^35 checks, 0 failures$", said, re.M), said
    run("cmake", "--install", build)
    version = dl.__version__.split(".")
    assert {f.name for f in (prefix / "lib").glob("libdelassus*")} == {
        "libdelassus.so",
        f"libdelassus.so.{'.'.join(version[:2])}",
        f"libdelassus.so.{'.'.join(version[:3])}",
    }
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "delassus"],
        env={"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    run("c++", "-std=c++20", ROOT / "examples/cpp/box_on_a_slope.cpp", "-o", tmp_path / "box", *flags, f"-Wl,-rpath,{prefix / 'lib'}")
    assert run(tmp_path / "box").count("Coulomb") == 4
