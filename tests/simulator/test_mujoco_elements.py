"""What a MuJoCo model has beyond joints, motors and shapes takes part: smooth forces, activations, sensors, tendons, limits of balls, margins, mocap bodies.

Oracles: MuJoCo's own acceleration without constraints, its own sensors and activations at the same state, closed forms.
"""

import mujoco
import numpy as np
import pytest

import delassus as dl

# every kind of smooth force: fluid, wind, gravity compensation, springs of balls, tendons, a bounded joint, every transmission, dynamics, gain and bias
EVERYTHING = """<mujoco><option density="1.2" viscosity="1e-3" wind="1 0 0"/>
<worldbody><site name="w" pos="1 0 1"/><body name="b" pos="0 0 1" gravcomp=".5"><joint name="ball" type="ball" stiffness="3" damping=".1"/><geom type="box" size=".1 .2 .3"/><site name="s" pos="0 0 .3"/>
 <body name="c" pos="0 0 .4"><joint name="h" axis="0 1 0" stiffness="2" damping=".3" actuatorfrcrange="-1 1"/><geom size=".1"/><site name="t" pos=".1 0 .1"/>
 <body name="d" pos="0 0 .4"><joint name="l" type="slide" axis="0 0 1" stiffness="200" damping="3"/><geom size=".1"/><site name="e"/></body></body></body>
 <body name="free" pos="3 0 1"><freejoint/><geom type="ellipsoid" size=".1 .2 .3" fluidshape="ellipsoid"/></body></worldbody>
<tendon><spatial name="sp" stiffness="30" damping="2"><site site="w"/><site site="s"/><site site="t"/></spatial>
 <fixed name="fx" stiffness="1" springlength=".1 .2"><joint joint="h" coef="1"/><joint joint="l" coef="2"/></fixed></tendon>
<actuator><motor name="m" joint="h" gear="5"/><position name="p" joint="h" kp="10" kv="1"/><muscle name="mu" tendon="sp" lengthrange=".5 2"/>
 <general name="f" joint="l" dyntype="filterexact" dynprm=".1" gainprm="7"/><general name="g" joint="l" dyntype="filter" dynprm=".2" gainprm="2" actearly="true"/>
 <general name="ig" tendon="fx" dyntype="integrator" gainprm="3" biastype="affine" biasprm="0 -3 -1" actrange="-1 1"/><motor name="site" site="t" refsite="w" gear="1 2 3 0 0 1"/>
 <motor name="parent" jointinparent="ball" gear="1 2 3"/><general name="crank" cranksite="t" slidersite="e" cranklength=".9" gainprm="4"/></actuator></mujoco>"""


def with_state(m, seed):
    """A simulator and MuJoCo's data at the same random state, controls and activations."""
    rng = np.random.default_rng(seed)
    sim, d = dl.Simulator(m), mujoco.MjData(m)
    q, v, act, control = sim.model.random(rng), rng.standard_normal(m.nv), rng.standard_normal(m.na), rng.standard_normal(m.nu)
    sim.reset(q, v)
    sim.activation = act
    d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = q, v, act, control
    return sim, d, control


@pytest.mark.parametrize("seed", range(5))
def test_smooth_accelerations_are_mujocos(seed):
    m = mujoco.MjModel.from_xml_string(EVERYTHING)
    sim, d, control = with_state(m, seed)
    assert sim.model.ignored == ()
    mujoco.mj_forward(m, d)
    ours = dl.forward_dynamics(sim.model, sim.q, sim.v, sim.smooth_forces(control))
    assert np.abs(ours - d.qacc_smooth).max() <= 1e-12 * np.abs(d.qacc_smooth).max()


@pytest.mark.parametrize("flag", ["spring", "damper", "actuation", "clampctrl", "gravity"])
def test_flags_take_the_same_forces_out(flag):
    m = mujoco.MjModel.from_xml_string(EVERYTHING.replace('wind="1 0 0"/>', f'wind="1 0 0"><flag {flag}="disable"/></option>'))
    sim, d, control = with_state(m, 7)
    mujoco.mj_forward(m, d)
    ours = dl.forward_dynamics(sim.model, sim.q, sim.v, sim.smooth_forces(control))
    assert np.abs(ours - d.qacc_smooth).max() <= 1e-12 * np.abs(d.qacc_smooth).max()


def test_activations_advance_as_mujocos_and_are_part_of_a_snapshot():
    m = mujoco.MjModel.from_xml_string(EVERYTHING)
    sim, d, control = with_state(m, 1)
    before = sim.save()
    sim.step(control=control)
    mujoco.mj_step(m, d)
    np.testing.assert_allclose(sim.activation, d.act, rtol=1e-14)
    after = sim.activation
    sim.restore(before)
    assert not np.array_equal(sim.activation, after)
    sim.step(control=control)
    assert np.array_equal(sim.activation, after)
    with pytest.raises(dl.errors.ArgumentError, match="activation"):
        sim.activation = np.zeros(m.na + 1)
    with pytest.raises(dl.errors.NotFiniteError, match="activation"):
        sim.activation = np.full(m.na, np.nan)


def test_actuators_of_user_types_are_refused():
    text = '<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody><actuator><general name="a" joint="j" {}="user"/></actuator></mujoco>'
    for kind in ("dyntype", "gaintype", "biastype"):
        with pytest.raises(dl.errors.ModelError, match=f"actuator 'a': {kind} user"):
            dl.Simulator(text.format(kind))


# ---- sensors ------------------------------------------------------------------------------------------------------------------

SENSED = """<mujoco><option cone="{}"/><worldbody><geom type="plane" size="5 5 1"/><body name="b" pos="0 0 .1"><freejoint/><geom name="g" type="box" size=".1 .1 .1"/><site name="s" size=".2"/>
 <body name="c" pos="0 0 .3"><joint name="h" axis="0 1 0" stiffness="20" damping=".3"/><geom size=".05"/><site name="t"/></body></body></worldbody>
<actuator><motor joint="h" name="m"/></actuator>
<sensor><touch name="touch" site="s"/><accelerometer name="acc" site="t"/><gyro site="t"/><force name="F" site="t"/><torque name="T" site="t"/><framepos objtype="body" objname="c"/>
<jointpos joint="h"/><subtreecom body="b"/><subtreelinvel body="b"/><subtreeangmom body="b"/><velocimeter site="t"/><magnetometer site="t"/><e_kinetic/><e_potential/><clock/>
<actuatorfrc name="u" actuator="m"/><framelinacc objtype="site" objname="t"/></sensor></mujoco>"""


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_touch_and_force_sensors_bear_the_weight(cone):
    m = mujoco.MjModel.from_xml_string(SENSED.format(cone))
    sim = dl.Simulator(m)
    for _ in range(800):
        step = sim.step()
    weight = 9.81 * m.body_mass.sum()
    assert step.sensors["touch"] == pytest.approx(weight, rel=1e-6)
    assert step.sensors["F"] == pytest.approx([0, 0, 9.81 * m.body_mass[2]], abs=1e-6 * weight)
    assert step.sensors["acc"] == pytest.approx([0, 0, 9.81], abs=1e-5)
    # MuJoCo's data has these contacts and forces, and no others
    d = sim.to_mujoco()
    force, total = np.zeros(6), np.zeros(3)
    for k in range(d.ncon):
        mujoco.mj_contactForce(m, d, k, force)
        total += d.contact[k].frame.reshape(3, 3).T @ force[:3]
    assert d.ncon == len(step.contacts) == 4
    assert total == pytest.approx([0, 0, weight], abs=1e-6 * weight)
    assert np.array_equal(d.sensordata, step.sensors.data)


LIMITED = """<mujoco><worldbody><body name="b" pos="0 0 1"><joint name="z" type="slide" axis="0 0 1" limited="true" range="-.2 .3"/><geom size=".1" mass="2"/></body>
<body pos="1 0 1"><joint name="y" type="slide" axis="0 0 1"/><geom size=".1" mass="3"/></body>
<body pos="2 0 1"><joint name="ball" type="ball" limited="true" range="0 30"/><geom size=".1" pos=".5 0 0" mass="1.5"/></body></worldbody>
<tendon><fixed name="t" limited="true" range="-.4 .6"><joint joint="y" coef="2"/></fixed></tendon>
<sensor><jointlimitfrc name="joint" joint="z"/><tendonlimitfrc name="tendon" tendon="t"/><jointlimitfrc name="cut" joint="z" cutoff="5"/><jointlimitfrc name="turned" joint="ball"/></sensor></mujoco>"""


@pytest.mark.parametrize("up", [False, True])
def test_sensors_of_limits_bear_the_weight(up):
    """A mass on a slide presses on its end with its weight, on either end with the same sign; a tendon's end has it over the tendon's lever."""
    m = mujoco.MjModel.from_xml_string(LIMITED)
    m.opt.gravity[2] = 9.81 if up else -9.81
    sim = dl.Simulator(m)
    assert not sim.step().sensors.data[:2].any()
    for _ in range(600):
        step = sim.step()
    assert step.q[0] == pytest.approx(0.3 if up else -0.2, abs=2e-5)
    assert step.sensors["joint"] == pytest.approx(2 * 9.81, rel=1e-6)
    assert step.sensors["cut"] == pytest.approx(5, abs=0)
    assert step.sensors["tendon"] == pytest.approx(3 * 9.81 / 2, rel=1e-6)
    # MuJoCo's own rest, softly: same signs, and the same numbers
    d = mujoco.MjData(m)
    for _ in range(4000):
        mujoco.mj_step(m, d)
    assert d.sensordata[[0, 1]] == pytest.approx(step.sensors.data[[0, 1]], rel=1e-6)
    data = sim.to_mujoco()
    rows = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
    assert set(np.round(data.efc_force[rows], 6)) <= set(np.round(step.sensors.data, 6))


def test_the_sensor_of_a_balls_limit_bears_the_moment_of_its_weight():
    """The ball is held at 30° below the horizontal: its limit has the moment m g l cos 30°."""
    m = mujoco.MjModel.from_xml_string(LIMITED)
    m.dof_damping[:] = 2.0
    sim = dl.Simulator(m)
    for _ in range(2000):
        step = sim.step()
    assert step.sensors["turned"] == pytest.approx(1.5 * 9.81 * 0.5 * np.cos(np.radians(30)), rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_sensors_without_contact_are_mujocos(seed):
    m = mujoco.MjModel.from_xml_string(SENSED.format("pyramidal"))
    sim, d, control = with_state(m, seed)
    q = sim.q.copy()
    q[2] = 5
    sim.reset(q, sim.v)
    step = sim.step(control=control)
    step_data = sim.to_mujoco()  # data that was filled for this state
    sim.step(control=control)
    d.qpos[:], d.qvel[:], d.time = step.q, step.v, step.time
    mujoco.mj_forward(m, d)
    assert np.abs(step.sensors.data - d.sensordata).max() <= 1e-9 * np.abs(d.sensordata).max()
    assert np.array_equal(step_data.sensordata, step.sensors.data)
    assert list(step.sensors) == [mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_SENSOR, k) or f"sensor_{k}" for k in range(m.nsensor)]
    assert "touch" in step.sensors
    assert "tuch" not in step.sensors
    with pytest.raises(dl.errors.UnknownNameError, match=r"sensor 'tuch' does not exist\. Did you mean 'touch'"):
        step.sensors["tuch"]


def test_data_of_another_model_is_refused():
    sim = dl.Simulator(SENSED.format("elliptic"))
    with pytest.raises(dl.errors.ArgumentTypeError, match="mujoco_model"):
        sim.to_mujoco(mujoco.MjData(mujoco.MjModel.from_xml_string("<mujoco/>")))
    assert dl.Simulator("go2").step().sensors.data.size == 0


# ---- rows of tendons and balls ------------------------------------------------------------------------------------------------


def test_a_ball_stops_at_its_limit():
    sim = dl.Simulator(
        '<mujoco><compiler angle="radian"/><worldbody><body><joint type="ball" range="0 .7" damping=".05"/><geom type="capsule" fromto="0 0 0 .3 .2 0" size=".03"/></body></worldbody></mujoco>'
    )
    for _ in range(2000):
        step = sim.step()
        assert step.status == "solved"
        assert 2 * np.arccos(min(1.0, abs(step.q[0]))) <= 0.7 + 2e-5
    assert 2 * np.arccos(abs(step.q[0])) == pytest.approx(0.7, abs=5e-5)
    assert np.abs(step.v).max() < 1e-4


ARMS = """<mujoco><worldbody><site name="w" pos="0 0 2.5"/><body pos="0 0 2"><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/><site name="s1" pos=".2 0 0"/>
<body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/><site name="s2" pos=".2 0 0"/></body></body>
<geom name="post" type="cylinder" size=".02 .1" euler="90 0 0" pos=".1 0 2.2" contype="0" conaffinity="0"/></worldbody>{}</mujoco>"""


@pytest.mark.parametrize("wrap", ["", '<geom geom="post"/>'])
def test_a_rope_is_never_longer_than_its_range(wrap):
    rope = f'<tendon><spatial name="t" range="0 .9"><site site="w"/>{wrap}<site site="s1"/><site site="s2"/></spatial></tendon>'
    sim = dl.Simulator(ARMS.format(rope))
    data, lengths = None, []
    for _ in range(1500):
        assert sim.step().status == "solved"
        data = sim.to_mujoco(data)
        lengths.append(data.ten_length[0])
    assert max(lengths) <= 0.9 + 3e-5
    assert max(lengths) >= 0.9 - 2e-5  # it was tight


def test_tendons_that_are_tied_keep_their_relation():
    tied = """<tendon><fixed name="x"><joint joint="a" coef="1"/></fixed><fixed name="y"><joint joint="b" coef="1"/></fixed></tendon>
    <equality><tendon tendon1="x" tendon2="y" polycoef=".1 .5 .2 0 0"/></equality>"""
    sim = dl.Simulator(ARMS.format(tied))
    for k in range(1500):
        step = sim.step()
        if k > 100:
            a, b = step.q
            assert a == pytest.approx(0.1 + 0.5 * b + 0.2 * b * b, abs=2e-4)


@pytest.mark.parametrize(("loss", "slips"), [(0.4, True), (50.0, False)])
def test_dry_friction_of_a_tendon_holds_below_its_loss(loss, slips):
    rope = f'<tendon><fixed frictionloss="{loss}"><joint joint="a" coef="1"/><joint joint="b" coef=".5"/></fixed></tendon>'
    sim = dl.Simulator(ARMS.format(rope))
    start = sim.q
    for _ in range(200):
        q = sim.step().q
    # the length of the tendon stays, or changes as dry friction lets it
    moved = abs((q - start) @ [1, 0.5])
    assert moved > 0.05 if slips else moved < 1e-6


def test_a_gripper_that_a_tendon_closes_holds_a_box():
    text = """<mujoco><option timestep=".002"/><worldbody>
    <body name="palm" pos="0 0 1"><geom type="box" size=".1 .02 .02" contype="0" conaffinity="0"/>
     <body pos="-.08 0 -.06"><joint name="l" type="slide" axis="1 0 0" range="0 .1" damping="5"/><geom type="box" size=".01 .02 .05" friction="1"/></body>
     <body pos=".08 0 -.06"><joint name="r" type="slide" axis="-1 0 0" range="0 .1" damping="5"/><geom type="box" size=".01 .02 .05" friction="1"/></body></body>
    <body name="box" pos="0 0 .94"><freejoint name="box"/><geom type="box" size=".03 .03 .03" mass=".2" friction="1"/></body><geom name="shelf" type="box" size=".02 .02 .005" pos="0 0 .905"/></worldbody>
    <tendon><fixed name="pull"><joint joint="l" coef="1"/><joint joint="r" coef="1"/></fixed></tendon>
    <equality><joint joint1="l" joint2="r"/></equality><actuator><motor tendon="pull" ctrlrange="0 50"/></actuator></mujoco>"""
    sim = dl.Simulator(text)
    for _ in range(500):
        sim.step(control=[20.0])
    start = sim.q
    for _ in range(5000):
        step = sim.step(control=[20.0])
    assert step.status == "solved"
    box = sim.model.joint_qadr[sim.model.joint_index("box")]
    assert np.abs(step.q[box : box + 3] - start[box : box + 3]).max() < 1e-6


# ---- margins ------------------------------------------------------------------------------------------------------------------


def test_shapes_rest_at_the_distance_of_their_margins():
    text = '<mujoco><worldbody><geom type="plane" size="1 1 1" margin="{}" gap="{}"/><body pos="0 0 .2"><freejoint/><geom size=".1" margin="{}"/></body></worldbody></mujoco>'
    sim = dl.Simulator(text.format(0.01, 0.003, 0.02))
    m = sim.mujoco_model
    for _ in range(700):
        step = sim.step()
    d = mujoco.MjData(m)
    d.qpos[:] = step.q
    d.qpos[2] = 0.105
    mujoco.mj_forward(m, d)
    # MuJoCo's own sum of margins and gaps
    assert step.q[2] == pytest.approx(0.1 + d.contact[0].includemargin, abs=2e-5)


def test_a_joint_stops_its_margin_before_its_limit():
    text = '<mujoco><compiler angle="radian"/><worldbody><body><joint axis="0 1 0" range="-1 .5" margin=".1" damping=".2"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body></worldbody></mujoco>'
    sim = dl.Simulator(text)
    for _ in range(1500):
        step = sim.step()
    assert step.q[0] == pytest.approx(0.4, abs=3e-5)


# ---- torsional and rolling friction -------------------------------------------------------------------------------------------

FLOOR = '<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="9 9 1" condim="{0}" friction="{1}"/><body pos="0 0 .1"><freejoint/>{2}</body></worldbody></mujoco>'
R, G = 0.1, 9.81


def until_rest(sim, velocity):
    sim.reset(None, velocity)
    for _ in range(20_000):
        step = sim.step()
        assert step.status in ("solved", "approximate")
        if np.abs(step.v).max() < 2e-3:
            return step
    raise AssertionError("it did not come to rest")


def test_a_ball_rolls_as_far_as_rolling_friction_lets_it():
    """A solid ball that rolls loses (5/7) g µ_r / R of its speed a second."""
    rolling = 0.004
    friction = f"1 .005 {rolling}"
    sim = dl.Simulator(FLOOR.format(6, friction, f'<geom size="{R}" condim="6" friction="{friction}"/>'))
    assert sim.model.ignored == ()
    step = until_rest(sim, [0.6, 0, 0, 0, 0.6 / R, 0])
    slowing = 5 / 7 * G * rolling / R
    assert step.q[0] == pytest.approx(0.6**2 / (2 * slowing), rel=0.01)
    assert step.time == pytest.approx(0.6 / slowing, rel=0.01)


def test_a_ball_spins_as_long_as_torsional_friction_lets_it():
    """About the normal: I ω̇ = −µ_t m g."""
    torsion = 0.003
    friction = f"1 {torsion} .0001"
    sim = dl.Simulator(FLOOR.format(4, friction, f'<geom size="{R}" condim="4" friction="{friction}"/>'))
    step = until_rest(sim, [0, 0, 0, 0, 0, 5.0])
    assert step.time == pytest.approx(5.0 * 0.4 * R * R / (torsion * G), rel=0.01)
    assert len(step.contacts) == 1


def test_a_box_turns_on_its_patch_as_long_as_torsional_friction_lets_it():
    """Four points bear a quarter each; next to no sliding friction: I ω̇ = −µ_t m g."""
    torsion = 0.02
    friction = f"1e-5 {torsion} .0001"
    sim = dl.Simulator(FLOOR.format(4, friction, f'<geom type="box" size=".2 .1 .1" mass="2" condim="4" friction="{friction}"/>'))
    step = until_rest(sim, [0, 0, 0, 0, 0, 2.0])
    inertia = 2 * (0.4**2 + 0.2**2) / 12
    assert step.time == pytest.approx(2.0 * inertia / (torsion * 2 * G), rel=0.01)


def test_torques_of_contacts_are_reported_and_reach_mujocos_data():
    friction = "1 .05 .001"
    m = mujoco.MjModel.from_xml_string(FLOOR.format(4, friction, f'<geom size="{R}" mass="2" condim="4" friction="{friction}"/>'))
    sim = dl.Simulator(m)
    sim.reset(None, [0, 0, 0, 0, 0, 50.0])
    for _ in range(20):
        step = sim.step()
    d, force = sim.to_mujoco(), np.zeros(6)
    mujoco.mj_contactForce(m, d, 0, force)
    assert force[0] == pytest.approx(2 * G, rel=1e-6)
    assert abs(force[3]) == pytest.approx(0.05 * 2 * G, rel=1e-4)
    assert step.v[5] < 50.0


def test_friction_that_differs_between_directions_slides_more_easily_along_one():
    text = """<mujoco><option timestep=".001" gravity="4 4 -9.81"/><worldbody><geom name="f" type="plane" size="9 9 1"/><body pos="0 0 .1"><freejoint/><geom name="b" type="box" size=".1 .1 .1"/></body></worldbody>
    <contact><pair geom1="f" geom2="b" friction="{} {} .005 .0001 .0001"/></contact></mujoco>"""
    ends = {}
    for mu in ((0.9, 0.1), (0.1, 0.9)):
        sim = dl.Simulator(text.format(*mu))
        assert sim.model.ignored == ()
        for _ in range(300):
            q = sim.step().q
        ends[mu] = q[:2]
    # MuJoCo's first tangent decides which is which: the two must mirror each other, and the box goes along the slippery one
    assert np.ptp(ends[0.9, 0.1]) > 0.05
    np.testing.assert_allclose(ends[0.9, 0.1], ends[0.1, 0.9][::-1], rtol=0.02)


# ---- mocap --------------------------------------------------------------------------------------------------------------------

MOCAP = """<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="5 5 1"/><body name="pusher" mocap="true" pos="-.25 0 .1"><geom type="box" size=".1 .1 .1"/></body>
<body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body name="plate" mocap="true" pos="3 0 1"><geom type="box" size=".5 .5 .05"/></body><body pos="3 0 1.15"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body name="hook" mocap="true" pos="0 3 2"/><body name="arm" pos="0 3 2"><freejoint/><geom size=".1" pos=".1 0 0"/></body></worldbody>
<equality><weld body1="hook" body2="arm"/></equality><keyframe><key name="k" mpos="-.3 0 .1 3 0 1 0 3 2"/></keyframe></mujoco>"""


def test_what_a_user_moves_pushes_carries_and_leads():
    sim = dl.Simulator(MOCAP)
    assert sim.model.ignored == ()
    assert sim.mocap_names == ("pusher", "plate", "hook")
    for k in range(800):
        t = (k + 1) * 1e-3
        sim.set_mocap("pusher", [-0.25 + 0.3 * t, 0, 0.1])
        sim.set_mocap(1, [3, 0.4 * t, 1])
        sim.set_mocap("hook", [0.2 * np.sin(3 * t), 3, 2], [np.cos(t / 2), 0, 0, np.sin(t / 2)])
        step = sim.step()
        assert step.status == "solved"
    q, v, t = step.q, step.v, step.time
    place, turn = sim.mocap_poses
    # pushed: it touches and goes as fast; carried: it slips until it is as fast, v² / (2 µ g); led: rigidly
    assert q[0] == pytest.approx(place[0, 0] + 0.2, abs=5e-5)
    assert v[0] == pytest.approx(0.3, abs=1e-5)
    assert place[1, 1] - q[8] == pytest.approx(0.4**2 / (2 * G), rel=0.05)
    assert v[7] == pytest.approx(0.4, abs=1e-5)
    assert q[14:17] == pytest.approx(place[2], abs=1e-8)
    assert abs(q[17:21] @ turn[2]) == pytest.approx(1, abs=1e-12)
    assert v[12] == pytest.approx(0.6 * np.cos(3 * t), abs=2e-3)


def test_mocap_poses_are_part_of_snapshots_and_keyframes():
    sim = dl.Simulator(MOCAP)
    sim.reset("k")
    assert sim.mocap_poses[0][0].tolist() == [-0.3, 0, 0.1]
    sim.set_mocap("pusher", [1, 0, 0.1])
    before = sim.save()
    ways = []
    for _ in range(2):
        for _ in range(20):
            step = sim.step()
        ways.append(step.q)
        sim.restore(before)
    assert np.array_equal(*ways)
    assert sim.mocap_poses[0][0].tolist() == [-0.3, 0, 0.1]
    # farther than a step takes it: 10 m/s
    sim.step()
    assert sim.mocap_poses[0][0, 0] == pytest.approx(-0.3 + 0.01, abs=1e-12)
    sim.set_mocap("plate", [7, 7, 7], at_once=True)
    assert sim.mocap_poses[0][1].tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.set_mocap("box", [0, 0, 0]), dl.errors.UnknownNameError, "mocap body 'box'.*Available: pusher, plate, hook"),
        (lambda s: s.set_mocap(3, [0, 0, 0]), dl.errors.UnknownNameError, "mocap body '3'"),
        (lambda s: s.set_mocap("hook", [0, np.nan, 0]), dl.errors.NotFiniteError, "position"),
        (lambda s: s.set_mocap("hook", [0, 0]), dl.errors.ArgumentError, "position"),
        (lambda s: s.set_mocap("hook", quaternion=[0, 0, 0, 0]), dl.errors.ArgumentError, "quaternion: expected a length other than zero"),
    ],
)
def test_bad_poses_are_named_and_change_nothing(call, error, message):
    sim = dl.Simulator(MOCAP)
    before = sim.save()
    with pytest.raises(error, match=message):
        call(sim)
    assert np.array_equal(sim.save(), before)


def test_the_timestep_is_the_models_own_unless_told_otherwise():
    text = '<mujoco><option timestep=".004"/><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>'
    assert dl.Simulator(text).timestep == dl.load(text).timestep == 0.004
    assert dl.Simulator(text, timestep=0.003).timestep == 0.003
    assert dl.Simulator(dl.scenes.box_stack(1)).timestep == 0.001
    assert dl.load(dl.load(text).to_mjcf()).timestep == 0.004


# ---- restitution of shapes ----------------------------------------------------------------------------------------------------

BALLS = """<mujoco><option timestep=".001"/><worldbody><geom name="floor" type="plane" size="5 5 1"/><body pos="0 0 .1"><freejoint/><geom name="soft" size=".1"/></body>
<body pos="1 0 .1"><freejoint/><geom name="hard" size=".1"/></body></worldbody>{}</mujoco>"""


@pytest.mark.parametrize("way", ["argument", "file"])
def test_every_shape_bounces_by_its_own_restitution(way):
    custom = '<custom><tuple name="restitution"><element objtype="geom" objname="hard" prm=".8"/></tuple></custom>'
    sim = dl.Simulator(BALLS.format(custom)) if way == "file" else dl.Simulator(BALLS.format(""), restitution={"hard": 0.8})
    sim.reset(None, [0, 0, -2.0, 0, 0, 0, 0, 0, -2.0, 0, 0, 0])
    step = sim.step()
    assert step.v[2] == pytest.approx(0, abs=1e-6)
    assert step.v[8] == pytest.approx(0.8 * 2.0, rel=1e-3)


def test_bad_restitution_is_named():
    for given, message in (
        ({"har": 0.5}, "shape 'har' does not exist"),
        ({"hard": 2.0}, r"restitution\['hard'\]: expected a number from 0 to 1"),
        (-1.0, "restitution"),
    ):
        with pytest.raises(dl.errors.DelassusError, match=message):
            dl.Simulator(BALLS.format(""), restitution=given)
    with pytest.raises(dl.errors.LoadError, match="names something other than geoms"):
        dl.Simulator(BALLS.format('<custom><tuple name="restitution"><element objtype="body" objname="world" prm=".8"/></tuple></custom>'))


def test_force_sensors_feel_the_forces_of_loops():
    """A beam hangs on a pin in its middle and on a joint in the world: each bears what moments say, and the sensor at the joint reads the rest."""
    text = """<mujoco><option timestep=".001"/><worldbody><body name="base"><geom size=".01" mass=".1" contype="0" conaffinity="0"/>
    <body name="beam"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 1 0 0" size=".02" mass="3" contype="0" conaffinity="0"/><site name="s"/></body></body></worldbody>
    <equality><connect body1="beam" anchor="1 0 0"/></equality><sensor><force name="f" site="s"/></sensor></mujoco>"""
    sim = dl.Simulator(text)
    for _ in range(50):
        step = sim.step()
    # simply supported: half of the weight at each end
    assert step.sensors["f"] == pytest.approx([0, 0, 3 * G / 2], abs=1e-5)


def test_a_rope_between_two_bodies_lets_one_swing_on_the_other():
    """A free ball on a rope from a heavy block that rests on the floor: it hangs, the rope is never longer than it is, and without the rope it would fall."""
    text = """<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="5 5 1"/><body name="tower" pos="0 0 1"><freejoint/><geom type="box" size=".3 .3 1" mass="500"/><site name="a" pos=".5 0 .9"/></body>
    <body name="ball" pos=".8 0 1.6"><freejoint/><geom size=".05"/><site name="b"/></body></worldbody><tendon><spatial range="0 .6"><site site="a"/><site site="b"/></spatial></tendon></mujoco>"""
    sim = dl.Simulator(text)
    assert sim.model.ignored == ()
    data, lengths = None, []
    for _ in range(1500):
        step = sim.step()
        assert step.status == "solved"
        data = sim.to_mujoco(data)
        lengths.append(data.ten_length[0])
    assert 0.6 - 2e-5 <= max(lengths) <= 0.6 + 1e-4
    assert step.q[9] > 1.2
    assert step.islands == 1
