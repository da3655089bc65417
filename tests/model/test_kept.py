"""What a file says is kept number by number; what cannot be kept is listed once."""

import warnings
from dataclasses import fields
from pathlib import Path

import mujoco
import numpy as np
import pytest

import delassus as dl
from oracles.compare import agree
from oracles.dense import rotation

INF = np.inf


def open_bounds(limited, bounds):
    return np.where(np.asarray(limited, dtype=bool)[:, None], bounds, [-INF, INF])


@pytest.mark.parametrize("robot", dl.embedded_names())
def test_every_array_of_an_embedded_robot_is_mujocos(robot):
    m = mujoco.MjModel.from_xml_path(str(Path(dl.__file__).parent / "assets" / f"{robot}.xml"))
    model = dl.load(robot)
    assert (model.nq, model.nv, model.nbody, model.njoint) == (m.nq, m.nv, m.nbody, m.njnt)
    assert model.body_names == tuple(m.body(b).name for b in range(m.nbody))
    assert model.joint_names == tuple(m.joint(j).name or f"joint_{j}" for j in range(m.njnt))
    line = np.isin(m.jnt_type, [mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE])
    same = {
        "gravity": m.opt.gravity, "body_parent": m.body_parentid, "body_position": m.body_pos, "body_quaternion": m.body_quat, "body_mass": m.body_mass,
        "body_com": m.body_ipos, "joint_body": m.jnt_bodyid, "joint_qadr": m.jnt_qposadr, "joint_vadr": m.jnt_dofadr, "joint_stiffness": m.jnt_stiffness,
        "joint_range": open_bounds(m.jnt_limited, m.jnt_range), "dof_armature": m.dof_armature, "dof_damping": m.dof_damping,
        "dof_friction_loss": m.dof_frictionloss, "dof_stiffness": m.jnt_stiffness[m.dof_jntid],
    }  # fmt: skip
    for name, want in same.items():
        np.testing.assert_allclose(getattr(model, name), want, rtol=0, atol=1e-15, err_msg=name)
    agree(model.joint_axis[line], m.jnt_axis[line], 1e-15)
    agree(model.joint_position, np.where((m.jnt_type == mujoco.mjtJoint.mjJNT_FREE)[:, None], 0, m.jnt_pos), 0)
    agree(model.neutral(), m.qpos0, 1e-15)
    agree(
        model.spring_reference,
        np.where(np.repeat(m.jnt_stiffness, [(7, 4, 1, 1)[t] for t in m.jnt_type]) > 0, m.qpos_spring, m.qpos0),
        1e-15,
    )
    for b in range(m.nbody):
        R = rotation(m.body_iquat[b])
        agree(model.body_inertia[b], R @ np.diag(m.body_inertia[b]) @ R.T, 1e-14)
    assert list(model.keyframes) == [m.key(k).name for k in range(m.nkey)]
    for q, want in zip(model.keyframes.values(), m.key_qpos, strict=True):
        agree(q, want, 0)


@pytest.mark.parametrize("robot", dl.embedded_names())
def test_shapes_actuators_and_excludes_of_an_embedded_robot_are_mujocos(robot):
    m = mujoco.MjModel.from_xml_path(str(Path(dl.__file__).parent / "assets" / f"{robot}.xml"))
    model = dl.load(robot)
    assert len(model.shapes) == m.ngeom
    for g, s in enumerate(model.shapes):
        geom = m.geom(g)
        assert s.body == m.body(geom.bodyid[0]).name
        assert mujoco.mjtGeom(geom.type[0]).name == f"mjGEOM_{s.kind.upper()}"
        for got, want in (
            (s.size, geom.size[: len(s.size)]),
            (s.position, geom.pos),
            (s.quaternion, geom.quat),
            (s.friction, geom.friction),
        ):
            assert got == tuple(want)
        assert (s.contype, s.conaffinity, s.condim) == (geom.contype[0], geom.conaffinity[0], geom.condim[0])
    assert [a.name for a in model.actuators] == [m.actuator(a).name for a in range(len(model.actuators))]
    for a, actuator in enumerate(model.actuators):
        assert actuator.joint == m.joint(m.actuator_trnid[a, 0]).name
        assert (actuator.gear, actuator.gain) == (m.actuator_gear[a, 0], m.actuator_gainprm[a, 0])
        assert actuator.control_range == tuple(open_bounds(m.actuator_ctrllimited, m.actuator_ctrlrange)[a])
    assert len(model.collision_excludes) == m.nexclude


# ---- numbers written out --------------------------------------------------------------------------------------------------

WRITTEN = """<mujoco model="written"><compiler angle="radian" autolimits="true"/><option gravity="1 2 -3"/><worldbody>
<geom name="floor" type="plane" size="0 0 .1" friction=".7 .01 .001"/>
<body name="a" pos="1 2 3" quat="0 0 0 1">
 <inertial pos=".1 .2 .3" mass="4" diaginertia="3 2 1" quat=".5 .5 .5 .5"/>
 <joint name="h" axis="0 3 4" pos=".4 .5 .6" ref=".25" range="-1 2" armature=".1" damping=".2" stiffness="7" springref=".3" frictionloss=".4"/>
 <joint name="s" type="slide" axis="1 0 0"/><geom name="box" type="box" size=".1 .2 .3" contype="2" conaffinity="4" condim="4" margin=".01"/>
 <body name="b"><joint name="l" type="ball" range="0 1.5" stiffness="2" armature=".3"/><geom size=".1"/></body></body>
<body name="c"><freejoint name="f"/><geom size=".1"/></body></worldbody>
<contact><exclude body1="a" body2="c"/></contact>
<actuator><motor name="u" joint="h" gear="5" ctrlrange="-2 3"/><position name="p" joint="s" kp="11" kv="3" forcerange="-8 9"/></actuator>
<keyframe><key name="k" qpos="1 2 1 0 0 0 5 6 7 0 1 0 0"/></keyframe></mujoco>"""


def test_numbers_written_in_mjcf_are_in_the_records():
    model = dl.load(WRITTEN)
    h, s, ball, f = model.joints
    a, b, _ = model.bodies
    assert model.gravity.tolist() == [1, 2, -3]
    assert (a.position, a.quaternion, a.mass, a.com) == ((1, 2, 3), (0, 0, 0, 1), 4, (0.1, 0.2, 0.3))
    # the quaternion turns x to y, y to z, z to x
    np.testing.assert_allclose(a.inertia, (1, 3, 2, 0, 0, 0), atol=1e-15)
    assert b.parent == "a"
    assert (h.type, s.type, ball.type, f.type) == ("hinge", "slide", "ball", "free")
    assert (h.axis, h.position, h.reference, h.range) == ((0, 0.6, 0.8), (0.4, 0.5, 0.6), 0.25, (-1, 2))
    assert (h.armature, h.damping, h.stiffness, h.spring_reference, h.friction_loss) == (0.1, 0.2, 7, (0.3,), 0.4)
    assert (ball.range, ball.stiffness, ball.spring_reference, ball.armature) == ((0, 1.5), 2, (1, 0, 0, 0), 0.3)
    assert (s.range, f.range) == ((-INF, INF), (-INF, INF))
    floor, box = model.shapes[:2]
    assert (floor.body, floor.kind, floor.friction) == ("world", "plane", (0.7, 0.01, 0.001))
    assert (box.size, box.contype, box.conaffinity, box.condim, box.margin) == ((0.1, 0.2, 0.3), 2, 4, 4, 0.01)
    u, p = model.actuators
    assert (u.joint, u.gear, u.gain, u.bias, u.control_range, u.force_range) == ("h", 5, 1, (0, 0, 0), (-2, 3), (-INF, INF))
    assert (p.joint, p.gain, p.bias, p.force_range) == ("s", 11, (0, -11, -3), (-8, 9))
    assert model.keyframes["k"].tolist() == [1, 2, 1, 0, 0, 0, 5, 6, 7, 0, 1, 0, 0]
    assert model.collision_excludes == (("a", "c"),)
    assert model.spring_reference.tolist() == [0.3, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]


def test_actuators_of_several_controls_keep_their_places():
    text = WRITTEN.replace("<actuator>", '<actuator><orientation joint="l" kp="1"/>')
    if not hasattr(mujoco.MjModel, "actuator_ctrladr"):
        pytest.skip("this MuJoCo has one control an actuator")
    model, m = dl.load(text), mujoco.MjModel.from_xml_string(text)
    first, *rest = model.actuators
    assert (first.joint, first.controls) == (None, m.actuator_ctrlnum[0])
    assert tuple(rest) == dl.load(WRITTEN).actuators
    assert model.nu == m.nu


def test_disabled_gravity_is_no_gravity():
    assert not dl.load('<mujoco><option><flag gravity="disable"/></option></mujoco>').gravity.any()


# ---- loops ----------------------------------------------------------------------------------------------------------------

LOOPS = """<mujoco><compiler angle="radian"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
<site name="ground" pos=".3 .1 .2" quat=".5 .5 -.5 .5"/>
<body name="a" pos="0 0 1" quat=".8 0 .6 0"><freejoint/><geom size=".1"/><site name="on_a" pos=".1 .2 .3" quat=".6 0 0 .8"/>
 <body name="a2" pos=".2 0 0"><joint name="h" ref=".3"/><geom size=".1"/></body></body>
<body name="b" pos="1 0 1"><joint name="s" type="slide" ref="-.2"/><joint type="ball"/><geom size=".1"/><site name="on_b" pos="-.1 0 .3" quat="0 .6 .8 0"/></body>
</worldbody><equality>
<connect name="bodies" body1="a2" body2="b" anchor=".1 .2 .3"/>
<connect name="to ground" body1="b" anchor=".3 -.2 .1"/>
<connect name="sites" site1="on_a" site2="on_b"/>
<connect name="ground site" site1="ground" site2="on_b"/>
<weld name="weld" body1="a" body2="b"/>
<weld name="off" body1="a" body2="b" active="false"/>
<weld name="weld posed" body1="b" body2="a2" anchor=".1 .2 .3" relpose=".4 .5 .6 .5 .5 .5 .5"/>
<weld name="weld to ground" body1="a2" anchor=".1 0 .3"/>
<weld name="weld sites" site1="on_a" site2="on_b"/>
<joint name="pair" joint1="h" joint2="s" polycoef=".1 .2 .3 .4 .5"/>
<connect name="off too" body1="a" body2="b" anchor="0 0 0" active="false"/>
<joint name="alone" joint1="s" polycoef=".7 0 0 0 0"/>
</equality></mujoco>"""


def residual(model, q, loop):
    """How far a loop record is from closed: 3 rows, 3 and the turn's quaternion, or 1 row."""
    if hasattr(loop, "polynomial"):
        x, other = (
            q[model.joint_qadr[k]] - model.joint_reference[k] if name else 0.0
            for name in (loop.joint, loop.other)
            for k in [model.joint_index(name) if name else 0]
        )
        return np.array([x - sum(c * other**k for k, c in enumerate(loop.polynomial))]), None
    X, Y = (dl.body_placement(model, q, body) for body in (loop.body, loop.other))
    apart = (X @ [*loop.point, 1] - Y @ [*loop.other_point, 1])[:3]
    if not hasattr(loop, "quaternion"):
        return apart, None
    return apart, (Y[:3, :3] @ rotation(loop.other_quaternion)).T @ X[:3, :3] @ rotation(loop.quaternion)


@pytest.mark.parametrize("seed", range(3))
def test_loop_records_have_the_residuals_of_mujocos_constraints(seed):
    m = mujoco.MjModel.from_xml_string(LOOPS)
    model = dl.load(LOOPS)
    assert [loop.name for loop in model.loops] == [m.equality(e).name for e in range(m.neq)]
    assert [loop.name for loop in model.loops if not loop.active] == ["off", "off too"]
    d = mujoco.MjData(m)
    d.qpos[:] = q = model.random(seed)
    d.eq_active[:] = 1
    mujoco.mj_forward(m, d)
    for e, loop in enumerate(model.loops):
        rows = d.efc_pos[(d.efc_id == e) & (d.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY)]
        moved, turn = residual(model, q, loop)
        agree(rows[: len(moved)], moved, 1e-14, scale=1.0)
        assert len(rows) == len(moved) + (0 if turn is None else 3)
        if turn is not None:
            # MuJoCo's rows are sin(θ/2) axis; the matrix has 2 sin(θ/2) cos(θ/2) axis
            sine = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
            half = np.sqrt((1 + np.trace(turn)) / 4)
            agree(np.abs(rows[3:] * 2 * half), np.abs(sine), 1e-12, scale=1.0)


def test_a_weld_without_torque_is_a_connect():
    """MuJoCo's residual of the rotation is scaled by it; any other number scales how soft the rotation is."""
    scaled = {
        scale: dl.load(mjcf(f'<equality><weld name="w" body1="a" anchor="1 2 3" torquescale="{scale}"/></equality>'))
        for scale in (1, 0.3, 0)
    }
    assert [model.ignored for model in scaled.values()] == [()] * 3
    assert scaled[0.3].loops == scaled[1].loops
    (pin,), (weld,) = scaled[0].loops, scaled[1].loops
    assert pin.kind == "connect"
    assert (pin.point, pin.other_point) == (weld.point, weld.other_point)


def test_velocities_of_keyframes_are_kept():
    model = dl.load(mjcf('<keyframe><key name="still"/><key name="turning" qpos="0.3" qvel="1.5"/></keyframe>'))
    assert set(model.keyframes) == {"still", "turning"}
    assert {name: v.tolist() for name, v in model.keyframe_velocities.items()} == {"turning": [1.5]}
    again = dl.load(model.to_mjcf())
    assert again.keyframe_velocities["turning"] == 1.5
    assert hash(model) != hash(dl.load(mjcf('<keyframe><key name="still"/><key name="turning" qpos="0.3"/></keyframe>')))


def test_loops_written_as_mjcf_and_read_back_are_the_same():
    model = dl.load(LOOPS)
    for got, want in zip(dl.load(model.to_mjcf()).loops, model.loops, strict=True):
        assert type(got) is type(want)
        for field in fields(want):
            assert getattr(got, field.name) == pytest.approx(getattr(want, field.name), abs=1e-15)


# ---- what is left out -----------------------------------------------------------------------------------------------------

BODY = '<body name="a"{}><joint name="j"/><geom name="g" size="1"/><site name="s"/>{}</body>'


def mjcf(rest="", attributes="", inside="", world=""):
    return f"<mujoco><worldbody>{world}{BODY.format(attributes, inside)}</worldbody>{rest}</mujoco>"


TETRA = '<asset><mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
LEFT_OUT = {
    "flex": (mjcf(world='<flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" rigid="true"/>'), ["1 flex"]),
    "joint below a mocap body": (mjcf(world='<body mocap="true"><body><joint/><geom size=".1"/></body></body>'), ["1 joint below a mocap body"]),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_is_left_out_is_listed_and_warned_of_once(case):
    text, listed = LEFT_OUT[case]
    with pytest.warns(UserWarning, match="not simulated as the file has it") as caught:
        model = dl.load(text)
    assert len(caught) == 1
    assert len(model.ignored) == len(listed)
    for got, want in zip(model.ignored, listed, strict=True):
        assert got.startswith(want)
        assert got in str(caught[0].message)
        assert got in str(model)
    assert caught[0].filename == __file__
    assert "j" in model.joint_names


def test_parameters_that_differ_within_a_free_joint_are_listed():
    m = mujoco.MjModel.from_xml_string('<mujoco><worldbody><body><freejoint name="f"/><geom size="1"/></body></worldbody></mujoco>')
    m.dof_armature[4], m.dof_damping[:], m.dof_frictionloss[0] = 1, 2, 3
    with pytest.warns(UserWarning, match="not simulated as the file has it") as caught:
        model = dl.load(m)
    assert len(caught) == 1
    assert [s.split(" that")[0] for s in model.ignored] == ["armature of joint 'f'", "friction loss of joint 'f'"]
    assert model.dof_damping.tolist() == [2] * 6


def test_nothing_left_out_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = dl.load(
            mjcf(TETRA + "<visual/><statistic/>", inside='<geom type="mesh" mesh="t" contype="0" conaffinity="0"/><light/><camera/>')
        )
        assert (drawn.ignored, dl.load(LOOPS).ignored) == ((), ())


SURFACES = {
    "mesh": mjcf(TETRA, inside='<geom type="mesh" mesh="t"/>'),
    "height field": mjcf(
        '<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1" elevation="0 1 0 1"/></asset>', world='<geom type="hfield" hfield="h"/>'
    ),
    "pair": mjcf('<contact><pair geom1="g" geom2="h"/></contact>', world='<geom name="h" size="1"/>'),
}


@pytest.mark.parametrize("case", SURFACES)
def test_surfaces_and_pairs_take_part_in_contacts_and_are_not_called_left_out(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = dl.load(SURFACES[case])
    assert model.ignored == ()
    b = dl.ModelBuilder()
    b.add_model(model, prefix="x_")
    # a builder takes primitive shapes only, and says so
    assert len(b.build().ignored) == 1


def test_loading_a_model_again_does_not_warn_again():
    with pytest.warns(UserWarning, match="1 flex"):
        model = dl.load(LEFT_OUT["flex"][0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dl.load(model) is model


def test_an_actuator_without_a_joint_is_of_a_file_only():
    record = dl.load(mjcf('<actuator><motor site="s"/></actuator>')).actuators[0]
    assert record.joint is None
    with pytest.raises(dl.errors.ModelError, match="which only an actuator of a loaded file may have"):
        dl.Model("m", [], [], actuators=[record])
