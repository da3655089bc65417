"""``tools/zoo`` tells models that we represent from those that we do not, and right motion from wrong."""

import importlib.util
import json
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import mujoco
import numpy as np
import pytest

import delassus as dl

TOOLS = Path(__file__).resolve().parents[2] / "tools"

PENDULUM = """<mujoco><option timestep="0.005" integrator="implicitfast"/><worldbody><geom type="plane" size="2 2 1"/><body pos="0 0 1"><joint name="hinge" axis="0 1 0" damping="0.1"/>
<geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" solref="0.01 1"/></body></worldbody><actuator><motor joint="hinge" ctrlrange="-1 1"/></actuator></mujoco>"""
HEAVIER = PENDULUM.replace('size="0.03"', 'size="0.031"')
CLOTH = """<mujoco><worldbody><flexcomp name="cloth" type="grid" dim="2" count="3 3 1" spacing="0.1 0.1 0.1" mass="1" radius="0.01"/></worldbody></mujoco>"""
FRAGMENT = """<mujocoinclude><body><joint/><geom size="0.1"/></body></mujocoinclude>"""
PART = """<mujoco><worldbody><body><joint/><geom size="0.1" material="elsewhere"/></body></worldbody></mujoco>"""
WHOLE = """<mujoco><asset><material name="elsewhere"/></asset><include file="part.xml"/></mujoco>"""
BROKEN = """<mujoco><worldbody><joint/></worldbody></mujoco>"""
STILL = """<mujoco><worldbody><geom size="0.1"/></worldbody></mujoco>"""
FILES = {
    "pendulum": PENDULUM, "cloth": CLOTH, "fragment": FRAGMENT, "part": PART, "whole": WHOLE, "broken": BROKEN, "still": STILL,
}  # fmt: skip


@pytest.fixture(scope="module")
def zoo():
    sys.path.insert(0, str(TOOLS))
    loader = SourceFileLoader("zoo_tool", str(TOOLS / "zoo"))
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("zoo_tool", loader))
    loader.exec_module(tool)
    return tool


@pytest.fixture(scope="module")
def worker(zoo):
    return importlib.import_module("zoo_worker")


def represented_model_is_complete_and_moves_as_in_mujoco(r):
    assert (r["status"], r["stage"], r["complete"], r["blocking"]) == ("examined", "done", True, [])
    assert any(line.startswith("softness") for line in r["ignored"])
    assert max(r["dynamics"].values()) < 1e-12
    assert r["divergence"]["relative"] < 1e-9
    for motion in (r["passive"], r["steered"]):
        assert (motion["solved"], motion["unsolved"]) == (20, {})
        assert motion["microseconds"]["median"] > 0
        assert motion["mujoco"]["microseconds"]["median"] > 0
    assert r["passive"]["energy_growth_relative"] < 1e-9


def other_model_is_incomplete_or_refused(r):
    assert not r.get("complete", False)
    assert "flex" in " ".join([*r.get("blocking", ()), r.get("reason", "")])


def test_folder_with_every_kind_of_file_is_told_apart_and_resumed(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / f"{name}.xml").write_text(text)
    files = {kind: tmp_path / kind for kind in ("json", "markdown", "resume")}
    command = [
        sys.executable,
        str(TOOLS / "zoo"),
        str(folder),
        "--seconds=0.1",
        "--jobs=2",
        *(f"--{kind}={f}" for kind, f in files.items()),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    results = {r["name"].removesuffix(".xml"): r for r in json.loads(files["json"].read_text())}
    represented_model_is_complete_and_moves_as_in_mujoco(results["pendulum"])
    other_model_is_incomplete_or_refused(results["cloth"])
    assert results["whole"]["status"] == "examined"
    reasons = {name: r["reason"].split(":")[0] for name, r in results.items() if r["status"] == "skipped"}
    assert reasons == {"fragment": "fragment", "part": "fragment", "broken": "does not compile", "still": "nothing moves"}

    for text in (done.stdout, files["markdown"].read_text()):
        for words in ("2 fragment", "1 does not compile", "1 nothing moves", "pendulum.xml", "cloth.xml", "whole.xml"):
            assert words in text
    assert "| pendulum.xml | 1 | yes |" in files["markdown"].read_text()

    # what is in the file is not run again
    lines = files["resume"].read_text().splitlines()
    assert len(lines) == len(FILES)
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert files["resume"].read_text().splitlines() == lines


@pytest.mark.filterwarnings("ignore:.*not represented")
def test_model_with_wrong_numbers_is_found(worker):
    """Our side is given a heavier pendulum than MuJoCo's."""
    m = mujoco.MjModel.from_xml_string(PENDULUM)
    heavier = dl.load(HEAVIER)
    rng = np.random.default_rng(0)
    assert min(worker.tree_dynamics(m, heavier, rng).values()) > 1e-3
    other = worker.smooth(m, heavier, rng)
    assert other == worker.NOT_AVAILABLE or other["acceleration"] > 1e-3


def test_motion_that_gains_energy_is_found(worker):
    energy = worker.Energy(mujoco.MjModel.from_xml_string(PENDULUM))
    for speed in (0.0, 1.0, 0.0):
        energy.look(np.zeros(1), np.array([speed]))
    assert energy.relative > 0.1


def test_complete_model_with_other_accelerations_asks_for_a_look(zoo):
    r = {
        "status": "examined",
        "package": "p",
        "name": "n",
        "complete": True,
        "blocking": [],
        "smooth": {"acceleration": 1e-3, "force": 1e-3},
    }
    assert list(zoo.fault(r)) == ["complete, but smooth accelerations differ by 1.0e-03"]
    assert list(zoo.fault(r | {"smooth": {"acceleration": 1e-9}})) == []
    assert list(zoo.fault(r | {"status": "crash", "reason": "exit code -6", "smooth": None})) == ["crash: exit code -6"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 sensor", "12 sensors"),
        ("1 limit of a ball joint", "3 limits of ball joints"),
        (
            "1 actuator that is not a motor or servo on one hinge or slide",
            "4 actuators that are not a motor or servo on one hinge or slide",
        ),
        (
            "torsional or rolling friction of 1 contact shape (condim 4 or 6)",
            "torsional or rolling friction of 20 contact shapes (condim 4 or 6)",
        ),
        ("equality 'a' of type tendon", "equality 'b c' of type tendon"),
        ("torquescale 0.5 of weld 'a'", "torquescale 2 of weld 'b'"),
        ("damping of joint 'a' that differs between degrees of freedom", "damping of joint 'b' that differs between degrees of freedom"),
    ],
)
def test_lines_that_say_the_same_of_two_models_have_one_cause(zoo, one, other):
    assert zoo.cause(one) == zoo.cause(other)
    assert zoo.cause(one) != zoo.cause("2 tendons")
