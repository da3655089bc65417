"""``delassus bench`` on robots as users have them: their constraints, their files, their mistakes."""

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from typer.testing import CliRunner

import delassus as dl
from delassus.bench import methods, report
from delassus.cli import app

FLOOR = '<geom type="plane" size="1 1 1"/>'
BOX = '<body name="box" pos="0 0 0.1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
ROBOTS = {
    "talos": ("talos_data/robots/talos_full_v2.urdf", ["--floating-base", "--contact", "left_sole_link", "--weld", "right_sole_link"]),
    "solo": ("solo_description/robots/solo12.urdf", ["--floating-base", "--contact", "FL_FOOT", "--contact", "HR_FOOT"]),
    "panda": ("panda_description/urdf/panda.urdf", ["--weld", "panda_hand"]),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(report, "_BUDGET", 0.002)


def bench(tmp_path, *words, code=0):
    """Run the command within this process; what it prints, however its lines are broken, and what it writes."""
    file = tmp_path / "bench.json"
    done = CliRunner().invoke(app, ["bench", *map(str, words), "--seconds", "0.02", "--json", str(file)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output[-4000:]
    return " ".join(done.output.split()), json.loads(file.read_text())


def urdf(name):
    try:
        return distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots") / ROBOTS[name][0]
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")


def mjcf(tmp_path, inside):
    (tmp_path / "mine.xml").write_text(f"<mujoco><worldbody>{inside}</worldbody></mujoco>")
    return tmp_path / "mine.xml"


def timed(told, section):
    return {m["method"] for m in told["methods"]["sections"][section]["methods"] if m["microseconds"] is not None}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROBOTS)
def test_robots_of_others(name, tmp_path):
    path, words = urdf(name), ROBOTS[name][1]
    shown, told = bench(tmp_path, path, *words, "--counting", "0")
    model = dl.load(path, floating_base="--floating-base" in words) if name == "solo" else None
    sections = told["methods"]["sections"]
    assert set(sections) == {"matrix", "inverse", "dynamics", "contacts"}
    loops = {"talos": 12, "solo": 0, "panda": 1}[name]
    assert told["methods"]["rows"] == loops + {"talos": 9, "solo": 6, "panda": 6}[name]
    assert timed(told, "matrix") == {*methods.MATRIX_FREE[:3], *methods.MATRIX_METHODS}
    assert timed(told, "dynamics") >= {"lcaba", "prox-ltl", "soft-gauss"}
    assert all(m["error"] <= m["allowed"] for s in sections.values() for m in s["methods"] if m["microseconds"] is not None)
    assert all(m["reason"] for s in sections.values() for m in s["methods"] if m["microseconds"] is None)
    assert ("one link each" in shown) == bool(loops)
    if name == "panda":
        assert sections["contacts"]["reason"] == "no contacts"
    else:
        assert "admm" in timed(told, "contacts")
    assert model is None or told["nv"] == model.nv == 18
    assert "mesh" not in shown.partition("ignored")[2]  # all of them are found


def test_without_loops_talos_is_for_every_method(tmp_path):
    shown, told = bench(tmp_path, urdf("talos"), *ROBOTS["talos"][1], "--no-loops", "--no-simulation", "--counting", "0")
    assert told["methods"]["rows"] == 9
    assert timed(told, "matrix") == {*methods.MATRIX_FREE[:3], *methods.MATRIX_METHODS}
    assert "real-time factor" not in shown


def test_a_file_of_the_users_with_contacts_of_its_simulation(tmp_path):
    shown, told = bench(tmp_path, mjcf(tmp_path, FLOOR + BOX))
    assert (told["methods"]["rows"], told["methods"]["contacts"]) == (12, 4)
    assert told["methods"]["constraints"] == ["<PointContact: 3 rows on box and world>"] * 4
    assert timed(told, "matrix") == {*methods.MATRIX_FREE[:3], *methods.MATRIX_METHODS}
    assert timed(told, "contacts") == set(methods.CONTACT_METHODS)
    assert told["mujoco"]["seconds_per_step"] > 0
    assert set(told["stages"]) >= {"collide", "solve", "step"}
    assert "of the simulation" in shown
    choice = told["methods"]["sections"]["matrix"]["choice"]
    assert f"auto chooses {choice}" in shown


def test_asked_constraints_replace_contacts(tmp_path):
    _, told = bench(tmp_path, mjcf(tmp_path, FLOOR + BOX), "--weld", "box", "--counting", "0")
    assert told["methods"]["constraints"] == ["<Weld: 6 rows on box and world>"]
    assert told["methods"]["state"] == "in the pose it starts from"


def test_without_constraints_the_dynamics_are_left_and_a_line_says_what_to_do(tmp_path):
    arm = '<body name="arm"><joint axis="0 1 0"/><geom size=".1" pos=".5 0 0"/><body name="hand" pos="1 0 0"><joint axis="0 0 1"/><geom size=".1"/></body></body>'
    shown, told = bench(tmp_path, mjcf(tmp_path, arm), "--counting", "0")
    assert told["methods"]["rows"] == 0
    assert timed(told, "dynamics") == set(methods.DYNAMICS_METHODS)
    assert "hold a body with --contact BODY or --weld BODY; last links are hand" in shown


def test_one_body_alone(tmp_path):
    _, told = bench(tmp_path, mjcf(tmp_path, BOX), "--counting", "0")
    assert (told["nv"], told["methods"]["rows"]) == (6, 0)


def test_a_massless_link_in_between(tmp_path):
    weighs = '<inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>'
    hinge = '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/><origin xyz="0 0 .5"/><axis xyz="{3}"/></joint>'
    (tmp_path / "cross.urdf").write_text(
        f'<robot name="cross"><link name="base"/><link name="cross"/><link name="rod">{weighs}</link>'
        + hinge.format("a", "base", "cross", "1 0 0") + hinge.format("b", "cross", "rod", "0 1 0") + "</robot>"
    )  # fmt: skip
    _, told = bench(tmp_path, tmp_path / "cross.urdf", "--contact", "rod", "--counting", "0")
    assert told["nv"] == 2
    assert timed(told, "matrix") == {*methods.MATRIX_FREE[:3], *methods.MATRIX_METHODS}
    assert "lcaba" in timed(told, "dynamics")


@pytest.mark.filterwarnings("ignore")
def test_a_singular_mass_matrix_is_said_and_nothing_is_timed(tmp_path):
    same = '<body><joint axis="0 1 0"/><geom size=".1" pos="0 0 1"/><body pos="0 0 2"><joint axis="0 1 0"/><joint axis="0 1 0"/><geom size=".1" pos="0 0 1"/></body></body>'
    shown, told = bench(tmp_path, mjcf(tmp_path, same))
    assert "no simulation" in shown
    assert "no methods" in shown
    assert "singular" in told["methods"]["reason"]


def test_what_cannot_be_simulated_is_said_and_the_rest_goes_on(tmp_path, monkeypatch):
    def unstable(*_, **__):
        raise dl.errors.UnstableError("it flew away.")

    monkeypatch.setattr(report, "run", unstable)
    shown, told = bench(tmp_path, "cassie", "--counting", "0")
    assert "no simulation: it flew away." in shown
    assert told["simulation"] == "it flew away."
    assert told["methods"]["rows"] == 12
    assert "lcaba" in timed(told, "dynamics")


def test_a_scene_without_simulation_keeps_its_own_constraints(tmp_path):
    _, told = bench(tmp_path, "cassie-standing-friction", "--no-simulation", "--counting", "0")
    assert told["methods"]["rows"] == 50
    _, told = bench(tmp_path, "cassie-standing-friction", "--no-simulation", "--no-loops", "--counting", "0", "--contact", "left-foot")
    assert told["methods"]["rows"] == 3


def test_only_some_methods(tmp_path):
    _, told = bench(tmp_path, "go2-standing", "--methods", "pv-osim,caba", "--counting", "0")
    assert {k: timed(told, k) for k in told["methods"]["sections"]} == {"matrix": {"pv-osim"}, "dynamics": {"caba"}}


def test_operations_are_shown(tmp_path):
    pytest.importorskip("casadi")
    shown, told = bench(tmp_path, "go2-standing", "--no-simulation", "--methods", "efpa", "--counting", "60")
    scene = dl.scenes.load("go2-standing")
    wanted = dl.textbook.count("efpa", scene.model, scene.constraints).total
    assert told["methods"]["sections"]["matrix"]["methods"][0]["operations"] == wanted
    assert f"{wanted:,}" in shown


def test_peers_beside(tmp_path):
    pytest.importorskip("pinocchio")
    shown, told = bench(tmp_path, "go2-standing", "--peers", "--counting", "0")
    assert timed(told, "tree") >= {"mass_matrix", "Pinocchio crba", "MuJoCo makeM", "forward_dynamics", "Pinocchio aba"}
    assert set(told["peers"]) == {"MuJoCo", "Pinocchio"}
    assert "not comparable: it softens every constraint" in shown


def test_a_wrong_method_ends_with_one_and_has_no_time(tmp_path, monkeypatch):
    right = dl.ExplicitDelassus.matrix

    def matrix(self, q, *, method="auto", out=None):
        return right(self, q, method=method, out=out) + (method == "kjr")

    monkeypatch.setattr(methods.ExplicitDelassus, "matrix", matrix)
    shown, told = bench(tmp_path, "go2-standing", "--no-simulation", "--counting", "0", code=1)
    assert "not timed: kjr (its result is off by" in shown
    assert timed(told, "matrix") == {*methods.MATRIX_FREE[:3], *methods.MATRIX_METHODS} - {"kjr"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["broken.xml"], "not well-formed"),
        (["nowhere.urdf"], "does not exist"),
        (["still.xml"], "nothing moves"),
        (["leaf.urdf"], "has no inertia"),
        (["go2", "--contact", "paw"], "'paw' does not exist"),
        (["go2", "--methods", "lcba"], "Did you mean 'lcaba'"),
        (["go2", "--keyframe", "x"], "keyframe"),
        (["go2", "--control", "1,2"], "expected 12 numbers"),
    ],
)
def test_mistakes_are_one_line_and_exit_with_two(words, said, tmp_path):
    (tmp_path / "broken.xml").write_text("<mujoco><worldbody></mujoco>")
    (tmp_path / "still.xml").write_text('<mujoco><worldbody><body><geom size=".1"/></body></worldbody></mujoco>')
    (tmp_path / "leaf.urdf").write_text(
        '<robot name="leaf"><link name="base"/><link name="tip"/><joint name="j" type="continuous"><parent link="base"/><child link="tip"/></joint></robot>'
    )
    command = [sys.executable, "-c", "from delassus.cli import main; main()", "bench", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"COLUMNS": "1000"}, timeout=60, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_hundred_columns_are_enough(tmp_path):
    command = [sys.executable, "-c", "from delassus.cli import main; main()", "bench", "go2-standing", "--seconds", "0.02", "--peers"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"COLUMNS": "100"}, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    # names and numbers are whole
    assert "…" not in done.stdout
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()
