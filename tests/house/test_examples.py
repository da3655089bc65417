"""The examples run and check themselves, and so do the commands."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import delassus as dl

ROOT = Path(__file__).resolve().parents[2]
WIDE = os.environ | {"COLUMNS": "120"}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short_and_its_own_checks_hold(path):
    text = path.read_text()
    assert len(text.splitlines()) < 80
    assert "assert " in text
    told = subprocess.run([sys.executable, str(path)], check=True, capture_output=True, text=True, timeout=120).stdout
    if "is not installed" in told:  # an example of an extra says so and ends
        pytest.skip(told.strip())


def test_commands_print_tables_and_write_json(tmp_path):
    command = [sys.executable, "-c", "from delassus.cli import main; main()"]
    shown = subprocess.run(
        [*command, "info", "cassie", "--json", "info.json"], check=True, capture_output=True, text=True, cwd=tmp_path, env=WIDE
    ).stdout
    assert "left-achilles-rod" in shown
    assert '"nv": 32' in (tmp_path / "info.json").read_text()
    shown = subprocess.run(
        [*command, "info", "cassie-standing-friction", "--json", "scene.json"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=WIDE,
    ).stdout
    assert "30 constraints, 50 rows" in shown
    assert re.search(r"JointFriction +22 +26 +box", shown)
    assert "4 from constraints, 12 from fill-in" in shown
    assert "forming G never pays off" in shown
    told = json.loads((tmp_path / "scene.json").read_text())
    assert (told["operator"]["given"], told["operator"]["break_even"]) == (4, None)
    assert told["operator"]["solve"]["multiply_adds"] > told["operator"]["product"]["multiply_adds"] > 0
    assert (told["scene"], told["nv"], told["contacts"], told["rows"]) == ("cassie-standing-friction", 32, 4, 50)
    subprocess.run([*command, "check", "iiwa", "--states", "3", "--json", "check.json"], check=True, capture_output=True, cwd=tmp_path)
    assert '"passed": true' in (tmp_path / "check.json").read_text()
    failed = subprocess.run([*command, "info", "nobody"], capture_output=True, text=True, cwd=tmp_path)
    assert failed.returncode == 2
    assert "UnknownNameError" in failed.stderr
    assert "pyramid-with-robots" in failed.stderr
    assert "Traceback" not in failed.stderr
    for words in (["info", "[/x].xml"], ["info", "cassie", "--json", "no/such/folder.json"], ["demo", "--folder", "no/such/folder"]):
        failed = subprocess.run([*command, *words], capture_output=True, text=True, cwd=tmp_path)
        assert failed.returncode == 2
        assert "Traceback" not in failed.stderr


def delassus(*words, cwd, check=False):
    """Run the command ``delassus``; what it says of a failure is shown."""
    command = [sys.executable, "-c", "from delassus.cli import main; main()", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=WIDE, timeout=180, check=False)
    assert not check or done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done


def test_demo_checks_every_robot_drops_three_and_draws(tmp_path):
    shown = delassus("demo", "--seconds", "0.1", "--json", "demo.json", cwd=tmp_path, check=True).stdout
    told = json.loads((tmp_path / "demo.json").read_text())
    assert "atlas_hands" in told["robots"]
    assert max(told["robots"].values()) < 1e-9
    assert (told["nv"], told["steps"]) == (285, 100)
    assert told["operator"]["contacts"] >= 200
    assert told["penetration"] < 1e-4
    assert told["operator"]["product_error"] < 1e-9
    assert told["operator"]["product"][0] < told["operator"]["product"][1]
    assert "real-time factor" in shown
    assert "try next:" in shown
    assert (tmp_path / "delassus_demo.png").stat().st_size > 50_000
    film = [path for path in tmp_path.iterdir() if path.suffix in (".html", ".npz")]
    assert len(film) == 1
    assert film[0].stat().st_size > 10_000


def test_simulate_tells_how_it_went_and_records(tmp_path):
    (tmp_path / "pendulum.xml").write_text(
        '<mujoco><worldbody><body><joint axis="0 1 0"/><geom size="0.1" pos="0.5 0 0"/></body></worldbody></mujoco>'
    )
    shown = delassus("simulate", "pendulum.xml", "--seconds", "0.1", "--record", "p.npz", cwd=tmp_path, check=True).stdout
    assert "there were no contacts" in shown
    trajectory = dl.Trajectory.load(tmp_path / "p.npz")
    assert len(trajectory) == 11
    assert trajectory.q[-1, 0] > 0.05
    shown = delassus("simulate", "cassie", "--seconds", "0.05", "--figure", "c.png", "--json", "c.json", cwd=tmp_path, check=True).stdout
    assert "largest loop error" in shown
    told = json.loads((tmp_path / "c.json").read_text())
    assert (told["steps"], told["nv"]) == (50, 32)
    assert told["loop_error"] < 1e-5
    assert (tmp_path / "c.png").stat().st_size > 20_000


def test_bench_measures_by_stage_beside_mujoco(tmp_path):
    shown = delassus("bench", "go2-standing", "--seconds", "0.05", "--counting", "0", "--json", "b.json", cwd=tmp_path, check=True).stdout
    told = json.loads((tmp_path / "b.json").read_text())
    assert "matrix-free: G x again" in shown
    assert set(told["stages"]) >= {"collide", "solve", "step"}
    assert told["mujoco"]["seconds_per_step"] > 0
    assert told["methods"]["sections"]["inverse"]["choice"] in shown


def test_simulate_says_what_is_left_out_of_a_urdf_and_help_has_its_units(tmp_path):
    (tmp_path / "arm.urdf").write_text(
        '<robot name="arm"><link name="base"/><link name="tip"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<collision><geometry><mesh filename="no.stl"/></geometry></collision></link>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/></joint></robot>'
    )
    shown = delassus("simulate", "arm.urdf", "--seconds", "0.01", cwd=tmp_path).stdout
    assert "ignored by the model" in shown
    assert "mesh" in shown
    assert "add --floor" in shown
    assert "Simulation time step in seconds." in " ".join(delassus("simulate", "--help", cwd=tmp_path).stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["simulate", "broken.xml"], "not well-formed"),
        (["simulate", "nowhere.xml"], "does not exist"),
        (["simulate", "mesh.xml"], "no.stl"),
        (["bench", "goo2"], "Did you mean 'go2'"),
        (["simulate", "go2", "--control", "1,2"], "expected 12 numbers"),
        (["simulate", "go2", "--control", "a"], "--control"),
        (["simulate", "go2", "--keyframe", "x"], "keyframe"),
        (["simulate", "go2", "--timestep", "0"], "timestep"),
        (["simulate", "go2", "--record", "film.mp4"], ".html"),
        (["simulate", "go2", "--record", "no/film.npz"], "folder"),
        (["simulate", "go2", "--figure", "fall.jpg"], "--figure"),
        (["simulate", "go2", "--json", "no/such.json"], "--json"),
    ],
)
def test_mistakes_are_one_line(words, said, tmp_path):
    (tmp_path / "broken.xml").write_text("<mujoco><worldbody></mujoco>")
    (tmp_path / "mesh.xml").write_text(
        '<mujoco><asset><mesh name="a" file="no.stl"/></asset><worldbody><geom type="mesh" mesh="a"/></worldbody></mujoco>'
    )
    failed = delassus(*words, cwd=tmp_path)
    assert failed.returncode == 2
    assert said in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1, failed.stderr
