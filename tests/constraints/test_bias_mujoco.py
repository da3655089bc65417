"""Errors and velocities of equality constraints and limits are MuJoCo's, where it has them."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.constraints import JointLimit
from oracles.compare import agree
from oracles.dense import rotation

LOOPS = """<mujoco><compiler angle="radian"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
<site name="ground" pos=".3 .1 .2" quat=".5 .5 -.5 .5"/>
<body name="a" pos="0 0 1" quat=".8 0 .6 0"><freejoint/><geom size=".1"/><site name="on_a" pos=".1 .2 .3" quat=".6 0 0 .8"/>
 <body name="a2" pos=".2 0 0"><joint name="h" ref=".3" range="-1 1" limited="true"/><geom size=".1"/></body></body>
<body name="b" pos="1 0 1"><joint name="s" type="slide" ref="-.2" range="-2 3" limited="true"/><joint type="ball"/><geom size=".1"/>
 <site name="on_b" pos="-.1 0 .3" quat="0 .6 .8 0"/></body>
</worldbody><equality>
<connect body1="a2" body2="b" anchor=".1 .2 .3"/><connect body1="b" anchor=".3 -.2 .1"/><connect site1="ground" site2="on_b"/>
<weld body1="a" body2="b"/><weld body1="b" body2="a2" anchor=".1 .2 .3" relpose=".4 .5 .6 .5 .5 .5 .5"/><weld body1="a2" anchor=".1 0 .3"/>
<weld site1="on_a" site2="on_b"/><joint joint1="h" joint2="s" polycoef=".1 .2 .3 .4 .5"/><joint joint1="s" polycoef=".7 0 0 0 0"/>
</equality></mujoco>"""


def asked(m, q, v):
    """MuJoCo's constraints in a state."""
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = q, v
    mujoco.mj_forward(m, d)
    return d


def rotation_vector(sine, turned):
    """World axes of sin(θ/2) n in the axes of the other frame; θ at most π."""
    length = np.linalg.norm(sine)
    return turned @ sine * (2 * np.arcsin(min(length, 1.0)) / length)


def check(m, model, q, v):
    d = asked(m, q, v)
    equality = d.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    for e, loop in enumerate(model.loops):
        rows = equality & (d.efc_id == e)
        error, velocity = dl.constraint_error(model, q, [loop]), dl.constraint_velocity(model, q, v, [loop])
        k = min(3, len(error))
        agree(error[:k], d.efc_pos[rows][:k], 1e-13, 1.0)
        agree(velocity[:k], d.efc_vel[rows][:k], 1e-12, 1 + np.abs(velocity).max())
        if len(error) == 6:
            turned = dl.body_placement(model, q, loop.other)[:3, :3] @ rotation(loop.other_quaternion)
            want = rotation_vector(d.efc_pos[rows][3:], turned)
            # a quaternion and its negative are one rotation, and MuJoCo takes either
            agree(error[3:], want * np.sign(want @ error[3:]), 1e-10, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_loops_of_every_kind_have_mujocos_errors(seed):
    model = dl.load(LOOPS)
    check(mujoco.MjModel.from_xml_string(LOOPS), model, model.random(seed), np.random.default_rng(seed).standard_normal(model.nv))


@pytest.mark.parametrize("seed", range(3))
def test_loops_of_cassie_have_mujocos_errors(seed):
    model = dl.load("cassie")
    m = mujoco.MjModel.from_xml_string(model.to_mjcf())
    check(m, model, model.random(seed), np.random.default_rng(seed).standard_normal(model.nv))


@pytest.mark.parametrize("seed", range(3))
def test_limits_have_mujocos_distances(seed):
    m, model = mujoco.MjModel.from_xml_string(LOOPS), dl.load(LOOPS)
    # so wide that both ends of every joint are near
    m.jnt_margin[:] = 100.0
    q, v = model.random(seed), np.random.default_rng(seed).standard_normal(model.nv)
    d = asked(m, q, v)
    for name in ("h", "s"):
        rows = (d.efc_type == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT) & (d.efc_id == m.joint(name).id)
        both = [JointLimit(model, name, "lower"), JointLimit(model, name, "upper")]
        agree(dl.constraint_error(model, q, both), d.efc_pos[rows], 1e-14, 1.0)
        agree(dl.constraint_velocity(model, q, v, both), d.efc_vel[rows], 1e-14, 1.0)
