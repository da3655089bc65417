"""Bad input gets a typed error that names the argument, what was expected, what came and the way out; nothing half-built stays."""

import warnings
from dataclasses import replace

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import (
    ArgumentError,
    ArgumentTypeError,
    DelassusError,
    LoadError,
    ModelError,
    NotFiniteError,
    QuaternionError,
    UnknownNameError,
)
from delassus.model import Actuator, Body, ConnectLoop, Joint, JointLoop, Shape, WeldLoop

NAN, INF = np.nan, np.inf
SOLID = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}


def arm():
    """A sound builder: a on the ground by a hinge, b on it by a ball."""
    b = dl.ModelBuilder("arm")
    b.add_body("a", **SOLID)
    b.add_joint("a", "hinge", name="h")
    b.add_body("b", "a", position=(1, 0, 0), **SOLID)
    b.add_joint("b", "ball", name="l")
    return b


def after(change):
    """Build the arm after a change."""

    def thunk():
        b = arm()
        change(b)
        b.build()

    return thunk


def body(name="c", parent="b", **options):
    return after(lambda b: b.add_body(name, parent, **options))


def joint(kind="hinge", on="c", **options):
    def change(b):
        b.add_body("c", "b", **SOLID)
        b.add_joint(on, kind, **options)

    return after(change)


def leaf(kind="hinge", **options):
    """A last body with too little inertia for its joint."""

    def change(b):
        b.add_body("c", "world", **options)
        b.add_joint("c", kind)

    return after(change)


def call(name, *arguments, **options):
    return after(lambda b: getattr(b, name)(*arguments, **options))


def load(source, **options):
    return lambda: dl.load(source, **options)


def record(**changes):
    """Make a Model of records by hand, some of them spoilt."""
    sound = {
        "name": "m",
        "bodies": [Body("a", "world", mass=1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))],
        "joints": [Joint("h", "hinge", "a")],
    }
    return lambda: dl.Model(**{**sound, **changes})


def spoilt(**changes):
    return replace(Body("a", "world", mass=1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)), **changes)


def urdf(inertial="", joints="", links=""):
    one = '<joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint>'
    return f'<robot name="r"><link name="base"/><link name="a"><inertial>{inertial}</inertial></link>{links}{one}{joints}</robot>'


def inertial(mass, x, y, z):
    return f'<mass value="{mass}"/><inertia ixx="{x}" iyy="{y}" izz="{z}" ixy="0" ixz="0" iyz="0"/>'


def edited(field, index, value):
    """A compiled MuJoCo model with a number changed by hand."""

    def thunk():
        m = mujoco.MjModel.from_xml_string(arm().build().to_mjcf())
        getattr(m, field)[index] = value
        dl.load(m)

    return thunk


ARM = arm().build()
Q, V = ARM.neutral(), ARM.zero_velocity()


def put(x, k, value):
    x = x.copy()
    x[k] = value
    return x


# what is done → the error it gets, and what its message must hold, in order
BAD = {
    # names and objects
    "unknown robot": (load("go3"), UnknownNameError, "'go3'.*Did you mean 'go2'.*atlas.*talos"),
    "no name": (load(""), UnknownNameError, "robot ''.*Available: atlas"),
    "endless name": (load("x" * 5000), UnknownNameError, "Available: atlas"),
    "zero byte": (load("a\0b"), UnknownNameError, "Available: atlas"),
    "int": (load(3), ArgumentTypeError, "source: expected a name, a path.*got builtins.int"),
    "None": (load(None), ArgumentTypeError, "source: .*NoneType"),
    "list": (load(["go2"]), ArgumentTypeError, "source: .*list"),
    "bytes": (load(b"<mujoco/>"), ArgumentTypeError, "source: .*bytes"),
    "array": (load(np.zeros(3)), ArgumentTypeError, "source: .*numpy.ndarray"),
    "mujoco data": (lambda: dl.load(mujoco.MjData(mujoco.MjModel.from_xml_string("<mujoco/>"))), ArgumentTypeError, "source: .*MjData"),
    "floating MJCF": (load("<mujoco/>", floating_base=True), ArgumentError, "floating_base: only a URDF.*MJCF.*free joint"),
    "floating robot": (load("go2", floating_base=True), ArgumentError, "floating_base: only a URDF"),
    "floating model": (load(ARM, floating_base=True), ArgumentError, "floating_base: only a URDF.*Model"),
    # texts
    "missing file": (load("nowhere/robot.xml"), LoadError, "'nowhere/robot.xml' does not exist.*MJCF, URDF.*go2"),
    "missing file in sight": (load("robot.urdf"), LoadError, "'robot.urdf' does not exist"),
    "cut off": (load("<mujoco><worldbody>"), LoadError, "the text is incomplete: it ends at line 1"),
    "other root": (load("<sdf version='1.6'/>"), LoadError, "root element <sdf>; expected <mujoco>.*<robot>"),
    "refused by MuJoCo": (load("<mujoco><wrong/></mujoco>"), LoadError, "MuJoCo cannot compile the text.*unrecognized element"),
    "two bodies in MJCF": (load('<mujoco><worldbody><body name="a"/><body name="a"/></worldbody></mujoco>'), LoadError, "repeated name 'a'"),
    "URDF without joints' ends": (load('<robot name="r"><link name="a"/><joint name="j" type="fixed"/></robot>'), LoadError, "joint 'j' needs <parent link"),
    "URDF cycle": (
        load(urdf(inertial(1, 1, 1, 1), '<joint name="k" type="fixed"><parent link="a"/><child link="base"/></joint>')), LoadError, "every link is the child of a joint, so none is the root",
    ),
    "URDF two roots floating": (load(urdf(inertial(1, 1, 1, 1), links='<link name="x"/>'), floating_base=True), LoadError, r"floating_base: expected one root.*\['base', 'x'\]"),
    "URDF world floating": (load(urdf(inertial(1, 1, 1, 1)).replace("base", "world"), floating_base=True), LoadError, "floating_base: the root .* is the link .world., which is the ground. Remove it"),
    "URDF negative mass": (load(urdf(inertial(-1, 1, 1, 1))), ModelError, "body 'a': mass must not be negative, got -1"),
    "URDF NaN": (load(urdf(inertial("nan", 1, 1, 1))), LoadError, "link 'a': <mass> expects 1 finite number.*'nan'"),
    "URDF words": (load(urdf(inertial(1, "one", 1, 1))), LoadError, "link 'a': <inertia> expects 6 finite numbers.*'one"),
    "URDF short": (load(urdf('<origin xyz="1 2"/>' + inertial(1, 1, 1, 1))), LoadError, "link 'a': <origin> expects 3 finite numbers.*'1 2'"),
    "URDF leaf": (load(urdf(inertial(0, 0, 0, 0))), ModelError, "joint 'j'.*no inertia.*armature"),
    # bodies
    "NaN position": (body(position=(0, NAN, 0)), NotFiniteError, "position: every number must be finite"),
    "infinite mass": (body(mass=INF), NotFiniteError, "mass: every number must be finite"),
    "NaN inertia": (body(mass=1, inertia=(1, NAN, 1)), NotFiniteError, "'c': inertia: every number must be finite"),
    "infinite com": (body(mass=1, com=(0, 0, -INF)), NotFiniteError, "com: every number"),
    "short position": (body(position=(0, 0)), ArgumentError, r"position: expected shape \(3,\), got \(2,\)"),
    "matrix position": (body(position=np.eye(3)), ArgumentError, r"position: expected shape \(3,\), got \(3, 3\)"),
    "words": (body(position="abc"), ArgumentTypeError, "position: expected real numbers.*<U3"),
    "complex": (body(com=np.zeros(3, complex)), ArgumentTypeError, "com: expected real numbers.*complex128"),
    "no position": (body(position=None), ArgumentTypeError, "position: expected an array.*None"),
    "ragged": (body(inertia=[[1, 2], [3]]), ArgumentTypeError, "inertia: expected an array"),
    "array of masses": (body(mass=(1, 2)), ArgumentError, r"mass: expected shape \(\), got \(2,\)"),
    "inertia of four": (body(mass=1, inertia=(1, 1, 1, 0)), ArgumentError, r"'c': inertia must have shape \(6,\), \(3,\) or \(3, 3\), got \(4,\)"),
    "lopsided inertia": (body(mass=1, inertia=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]), ModelError, "'c': inertia must be symmetric"),
    "negative mass": (body(mass=-2), ModelError, "'c': mass must not be negative, got -2"),
    "triangle inequality": (body(mass=1, inertia=(1, 1, 2.1)), ModelError, "'c': inertia is not physical.*1, 1, 2.1.*sum of the others.*centre of mass"),
    "negative moment": (body(mass=1, inertia=(1, 1, -0.1)), ModelError, "'c': inertia is not physical.*-0.1"),
    "products too large": (body(mass=1, inertia=(1, 1, 1, 2, 0, 0)), ModelError, "'c': inertia is not physical"),
    "inertia without mass": (body(inertia=(1, 1, 1)), ModelError, "'c': inertia without mass.*Give it a mass"),
    "zero quaternion": (body(quaternion=(0, 0, 0, 0)), QuaternionError, "'c': quaternion: .*length 1, got .* length 0"),
    "unnormalised quaternion": (body(quaternion=(1, 1, 0, 0)), QuaternionError, "'c': quaternion: .*length 1.41421.*Divide it by its length"),
    "NaN quaternion": (body(quaternion=(1, 0, 0, NAN)), NotFiniteError, "quaternion: every number"),
    "two bodies of one name": (body("a"), ModelError, "'a': two bodies have this name"),
    "body named world": (body("world"), ModelError, "'world': the ground has this name"),
    "unknown parent": (body(parent="nobody"), ModelError, "'c': its parent 'nobody' does not exist. Available: world, a, b"),
    "own parent": (body(parent="c"), ModelError, "'c': their parents form a cycle"),
    "cycle": (after(lambda b: (b.add_body("c", "d"), b.add_body("d", "e"), b.add_body("e", "c"))), ModelError, "'c', 'd', 'e': their parents form a cycle"),
    "name is no string": (body(3), ArgumentTypeError, "name: expected a string, got int"),
    "name is empty": (body(""), ArgumentError, "name: expected a name, got an empty string"),
    "parent is None": (body(parent=None), ArgumentTypeError, "parent: expected a string, got NoneType"),
    "gravity": (lambda: dl.ModelBuilder(gravity=(0, 0, NAN)), NotFiniteError, "gravity: every number"),
    "scalar gravity": (lambda: dl.ModelBuilder(gravity=-9.81), ArgumentError, r"gravity: expected shape \(3,\), got \(\)"),
    "model name": (lambda: dl.ModelBuilder(None), ArgumentTypeError, "name: expected a string"),
    # leaves that move nothing
    "massless leaf": (leaf(), ModelError, "joint 'c_hinge'.*body 'c'.*no inertia.*Give the body mass and inertia, or the joint an armature"),
    "massless slide": (leaf("slide"), ModelError, "'c_slide'.*no inertia"),
    "point on its own hinge": (leaf(mass=1), ModelError, "'c_hinge'.*no inertia"),
    "rod turned about itself": (leaf(mass=1, com=(0, 0, 1), inertia=(1, 1, 0)), ModelError, "'c_hinge'.*no inertia"),
    "point on a ball": (leaf("ball", mass=1, com=(0, 0, 1)), ModelError, "'c_ball'.*no inertia"),
    "flying point": (leaf("free", mass=1), ModelError, "'c_free'.*no inertia"),
    # joints
    "joint on nothing": (joint(on="nobody"), ModelError, "'nobody_hinge': its body 'nobody' does not exist. Available: a, b, c"),
    "joint on the world": (joint(on="world"), ModelError, "its body 'world' does not exist"),
    "two joints of one name": (joint(name="h"), ModelError, "'h': two joints have this name"),
    "unknown type": (joint("screw"), ModelError, "'c_screw': type must be one of hinge, slide, ball, free, got 'screw'"),
    "type is no string": (joint(None), ArgumentTypeError, "type: expected a string"),
    "zero axis": (joint(axis=(0, 0, 0)), ModelError, "'c_hinge': axis: expected a length other than zero"),
    "NaN axis": (joint(axis=(0, 0, NAN)), NotFiniteError, "axis: every number"),
    "free joint below": (joint("free"), ModelError, "'c': a free joint needs the world as parent, got 'b'"),
    "free with another": (after(lambda b: (b.add_joint("a", "free"))), ModelError, "'a': a free joint must be the body's only joint, got 2"),
    "range turned round": (joint(range=(1, -1)), ModelError, r"'c_hinge': range must be \(low, high\).*\(1.0, -1.0\)"),
    "NaN range": (joint(range=(NAN, 1)), ModelError, r"'c_hinge': range must be \(low, high\)"),
    "range of one": (joint(range=(1,)), ArgumentError, r"range: expected shape \(2,\), got \(1,\)"),
    "no range": (joint(range=None), ArgumentTypeError, "range: expected an array"),
    **{f"negative {p}": (joint(**{p: -1}), ModelError, f"'c_hinge': {p} must not be negative, got -1") for p in ("armature", "damping", "stiffness", "friction_loss")},
    **{f"NaN {p}": (joint(**{p: NAN}), NotFiniteError, f"{p}: every number") for p in ("armature", "damping", "stiffness", "friction_loss", "reference")},
    "spring of two": (joint(spring_reference=(1, 2)), ArgumentError, r"spring_reference: expected shape \(1,\), got \(2,\)"),
    "spring of a ball": (joint("ball", spring_reference=1.0), ArgumentError, r"spring_reference: expected shape \(4,\), got \(\)"),
    # shapes
    "kind": (call("add_shape", "a", "torus", (1, 1)), ModelError, "kind must be one of plane, sphere.*'torus'"),
    "size of two": (call("add_shape", "a", "box", (1, 1)), ModelError, "a box has 3 sizes, got 2"),
    "size of zero": (call("add_shape", "a", "sphere", (0,)), ModelError, "sizes must be positive"),
    "NaN size": (call("add_shape", "a", "sphere", (NAN,)), NotFiniteError, "size: every number"),
    "no size": (call("add_shape", "a", "sphere", None), ArgumentTypeError, "size: expected an array"),
    "scalar size": (call("add_shape", "a", "sphere", 1.0), ArgumentError, r"size: expected shape \(1,\), got \(\)"),
    "negative friction": (call("add_shape", "a", "sphere", (1,), friction=-1), ArgumentError, "friction: expected at least 0, got -1"),
    "shape turned by nothing": (call("add_shape", "a", "sphere", (1,), quaternion=(0, 0, 0, 0)), QuaternionError, "quaternion: .*length 1"),
    "shape on nothing": (call("add_shape", "nobody", "sphere", (1,)), UnknownNameError, "body 'nobody' does not exist.*Available: a, b, world"),
    "contype": (call("add_shape", "a", "sphere", (1,), contype=0.5), ArgumentTypeError, "contype: expected a whole number, got float"),
    "two shapes of one name": (
        after(lambda b: [b.add_shape("a", "sphere", (1,), name="s") for _ in range(2)]), ModelError, "shape 's': two shapes have this name"
    ),
    # loops, actuators, keyframes, excludes
    "connect to nothing": (call("add_connect", "a", "nobody", point=(0, 0, 0), other_point=(0, 0, 0)), UnknownNameError, "'connect_0': body 'nobody'.*Available"),
    "connect of two": (call("add_connect", "a", "b", point=(0, 0), other_point=(0, 0, 0)), ArgumentError, r"point: expected shape \(3,\)"),
    "NaN point": (call("add_connect", "a", "b", point=(0, 0, 0), other_point=(0, 0, NAN)), NotFiniteError, "other_point: every number"),
    "weld to nothing": (call("add_weld", "a", "aa"), UnknownNameError, "'weld_0': body 'aa'.*Did you mean 'a'"),
    "zero weld": (call("add_weld", "a", "b", other_quaternion=(0, 0, 0, 0)), QuaternionError, "'weld_0': other_quaternion: .*length 1"),
    "unnormalised weld": (call("add_weld", "a", "b", quaternion=(2, 0, 0, 0)), QuaternionError, "'weld_0': quaternion: .*length 2"),
    "couple nothing": (call("add_coupling", "nobody"), UnknownNameError, "'coupling_0': joint 'nobody'.*Available: h, l"),
    "couple to nothing": (call("add_coupling", "h", "nobody"), UnknownNameError, "'coupling_0': joint 'nobody'"),
    "couple a ball": (call("add_coupling", "h", "l"), ModelError, "'coupling_0': joint 'l' is a ball; only hinges and slides"),
    "polynomial of two": (call("add_coupling", "h", polynomial=(0, 1)), ArgumentError, r"polynomial: expected shape \(5,\), got \(2,\)"),
    "two loops of one name": (after(lambda b: [b.add_coupling("h", name="x") for _ in range(2)]), ModelError, "loop 'x': two loops have this name"),
    "drive nothing": (call("add_actuator", "nobody"), UnknownNameError, "actuator 'nobody': joint 'nobody'"),
    "drive a ball": (call("add_actuator", "l"), ModelError, "actuator 'l': joint 'l' is a ball; only hinges and slides"),
    "NaN gear": (call("add_actuator", "h", gear=NAN), NotFiniteError, "gear: every number"),
    "control turned round": (call("add_actuator", "h", control_range=(1, -1)), ModelError, "actuator 'h': control_range must be"),
    "control of one": (call("add_actuator", "h", control_range=(1,)), ArgumentError, "control_range: expected shape"),
    "keyframe of two": (call("add_keyframe", "k", (1, 2)), ModelError, r"keyframe 'k': expected 5 coordinates, got shape \(2,\)"),
    "NaN keyframe": (call("add_keyframe", "k", (0, 1, 0, 0, NAN)), NotFiniteError, "q: every number"),
    "fast keyframe": (call("add_keyframe", "k", (0, 1, 0, 0, 0), (1, 2)), ArgumentError, r"keyframe 'k': velocity: expected shape \(4,\), got \(2,\)"),
    "velocity of no keyframe": (record(keyframe_velocities={"k": (0.0,)}), UnknownNameError, "keyframe_velocities: keyframe 'k'"),
    "unnormalised keyframe": (call("add_keyframe", "k", (0, 1, 1, 0, 0)), QuaternionError, "keyframe 'k': the quaternion of joint 'l'.*1.41421.*normalize"),
    "exclude nobody": (call("exclude_collision", "a", "nobody"), UnknownNameError, "collision_excludes: body 'nobody'"),
    "add no model": (call("add_model", "go2", prefix="x"), ArgumentTypeError, "model, prefix: expected a delassus.Model.*got str.*delassus.load"),
    "add a model twice": (after(lambda b: [b.add_model(ARM, prefix="x") for _ in range(2)]), ModelError, "'xa': two bodies have this name"),
    # records by hand, and compiled models edited by hand
    "record of a wrong class": (record(bodies=["a"]), ArgumentTypeError, "bodies: expected Body, got str"),
    "loop of a wrong class": (record(loops=[Joint("h", "hinge", "a")]), ArgumentTypeError, "loops: expected ConnectLoop or WeldLoop or .*JointLoop, got Joint"),
    "short record": (record(bodies=[spoilt(position=(0.0, 0.0))]), ArgumentTypeError, r"'a': position: expected a tuple of 3 numbers, got \(0.0, 0.0\)"),
    "list in a record": (record(bodies=[spoilt(com=[0.0, 0.0, 0.0])]), ArgumentTypeError, "'a': com: expected a tuple of 3 numbers"),
    "word in a record": (record(bodies=[spoilt(mass="heavy")]), ArgumentTypeError, "'a': mass: expected a tuple of 1 numbers"),
    "NaN in a record": (record(bodies=[spoilt(mass=NAN)]), NotFiniteError, "'a': mass"),
    "NaN in a joint record": (record(joints=[Joint("h", "hinge", "a", damping=INF)]), NotFiniteError, "'h': damping"),
    "NaN in a loop record": (record(loops=[ConnectLoop("c", "a", "world", (0.0, 0.0, NAN), (0.0, 0.0, 0.0))]), NotFiniteError, "loop 'c': point"),
    "NaN in a polynomial": (record(loops=[JointLoop("c", "h", None, (0.0, NAN, 0.0, 0.0, 0.0))]), NotFiniteError, "loop 'c': polynomial"),
    "NaN in an actuator": (record(actuators=[Actuator("u", "h", gain=NAN)]), NotFiniteError, "actuator 'u': gear and gain"),
    "friction record": (record(shapes=[Shape("s", "a", "sphere", (1.0,), friction=(-1.0, 0.0, 0.0))]), ModelError, "shape 's': friction must not be negative"),
    "weld record": (record(loops=[WeldLoop("w", "a", "world", (0.0,) * 3, (1.0, 0.0, 0.0, 0.0), (0.0,) * 3, (0.0,) * 4)]), QuaternionError, "loop 'w': other_quaternion"),
    "keyframe record": (record(keyframes={"k": (NAN,)}), NotFiniteError, "keyframe 'k'"),
    "gravity record": (record(gravity=(0, 0)), ArgumentError, "gravity: expected shape"),
    "edited mass": (edited("body_mass", 1, -1), ModelError, "body 'a': mass must not be negative"),
    "edited inertia": (edited("body_inertia", 1, (1, 1, 3)), ModelError, "body 'a': inertia is not physical"),
    "edited quaternion": (edited("body_quat", 2, (2, 0, 0, 0)), QuaternionError, "body 'b': quaternion.*length 2"),
    "edited damping": (edited("dof_damping", 0, NAN), NotFiniteError, "joint 'h': damping"),
    # look-ups
    "unknown body": (lambda: ARM.body_index("bb"), UnknownNameError, "body 'bb' does not exist. Did you mean 'b'.*Available: world, a, b"),
    "unknown joint": (lambda: dl.load("go2").joint_index("FL_hip"), UnknownNameError, "joint 'FL_hip' does not exist. Did you mean 'FL_"),
    "body out of reach": (lambda: ARM.body_index(3), ArgumentError, "body: expected an index from 0 to 2, got 3"),
    "negative body": (lambda: ARM.body_index(-1), ArgumentError, "body: expected an index from 0 to 2, got -1"),
    "real index": (lambda: ARM.joint_index(1.0), ArgumentTypeError, "joint: expected a name or an index, got float"),
    "yes as index": (lambda: ARM.joint_index(True), ArgumentTypeError, "joint: expected a name or an index, got bool"),
    "seed": (lambda: ARM.random("seed"), ArgumentTypeError, "rng: expected a numpy.random.Generator, a seed or None, got 'seed'"),
    "negative seed": (lambda: ARM.random(-1), ArgumentTypeError, "rng: expected"),
    # states
    "long q": (lambda: dl.mass_matrix(ARM, np.zeros(6)), ArgumentError, r"q: expected shape \(5,\), got \(6,\)"),
    "q as column": (lambda: dl.mass_matrix(ARM, Q[:, None]), ArgumentError, r"q: expected shape \(5,\), got \(5, 1\)"),
    "q of words": (lambda: dl.mass_matrix(ARM, ["a"] * 5), ArgumentTypeError, "q: expected real numbers"),
    "q of objects": (lambda: dl.mass_matrix(ARM, Q.astype(object)), ArgumentTypeError, "q: expected real numbers.*object"),
    "NaN q": (lambda: dl.mass_matrix(ARM, put(Q, 0, NAN)), NotFiniteError, "q: every number must be finite.*index 0"),
    "infinite q": (lambda: dl.body_placements(ARM, put(Q, 4, INF)), NotFiniteError, "q: every number must be finite.*index 4"),
    "NaN v": (lambda: dl.bias_forces(ARM, Q, put(V, 1, NAN)), NotFiniteError, "v: every number must be finite.*index 1"),
    "NaN tau": (lambda: dl.forward_dynamics(ARM, Q, V, put(V, 2, NAN)), NotFiniteError, "tau: every number must be finite.*index 2"),
    "short v": (lambda: dl.bias_forces(ARM, Q, V[1:]), ArgumentError, r"v: expected shape \(4,\), got \(3,\)"),
    "short tau": (lambda: dl.forward_dynamics(ARM, Q, V, V[1:]), ArgumentError, r"tau: expected shape \(4,\), got \(3,\)"),
    "unnormalised q": (lambda: dl.mass_matrix(ARM, put(Q, 1, 2.0)), QuaternionError, r"q\[1:5\] must have length 1, got 2.*delassus.normalize"),
    "zero q": (lambda: dl.mass_matrix(ARM, put(Q, 1, 0.0)), QuaternionError, r"q\[1:5\] must have length 1, got 0"),
    "zero to normalise": (lambda: dl.normalize(ARM, put(Q, 1, 0.0)), QuaternionError, "zero"),
    "model of another library": (lambda: dl.mass_matrix(mujoco.MjModel.from_xml_string("<mujoco/>"), Q), ArgumentTypeError, "model: expected a delassus.Model.*MjModel.*delassus.load"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_an_error_that_gives_the_answer(case):
    thunk, kind, message = BAD[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DelassusError, match=f"(?s){message}") as caught:
            thunk()
    assert type(caught.value) is kind
    assert caught.value.__cause__ is None


def test_errors_are_also_the_builtin_ones_people_catch():
    for kind, builtin in (
        (ArgumentError, ValueError),
        (ModelError, ValueError),
        (LoadError, ValueError),
        (ArgumentTypeError, TypeError),
        (UnknownNameError, LookupError),
    ):
        assert issubclass(kind, builtin)
        assert issubclass(kind, DelassusError)


FILES = {
    "empty": (b"", "is empty"),
    "binary": (bytes(range(256)), "is not XML: it does not start with '<'"),
    "words": (b"not a robot", "is not XML: it does not start with '<'"),
    "half": (b"<mujoco><worldbody><body>", "is incomplete: it ends at line 1"),
    "crossed": (b"<mujoco><worldbody></mujoco>", "not well-formed XML: mismatched tag"),
    "other": (b"<html><body/></html>", "root element <html>; expected"),
    "bad MJCF": (b"<mujoco><worldbody><geom/></worldbody></mujoco>", "size 0 must be positive"),
    "massless": (b"<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "mass and inertia"),
    "missing include": (b'<mujoco><include file="nothing.xml"/></mujoco>', "nothing.xml"),
    "missing mesh of MJCF": (b'<mujoco><asset><mesh file="nothing.stl"/></asset></mujoco>', "nothing.stl"),
}


@pytest.mark.parametrize("suffix", ["xml", "urdf"])
@pytest.mark.parametrize("case", FILES)
def test_bad_file_is_named_with_what_is_wrong(tmp_path, case, suffix):
    content, message = FILES[case]
    path = tmp_path / f"robot.{suffix}"
    path.write_bytes(content)
    with pytest.raises(LoadError, match=f"(?s)robot.{suffix}.*{message}"):
        dl.load(path)


def test_folder_is_not_a_model(tmp_path):
    with pytest.raises(LoadError, match=r"is a folder.*MJCF, URDF"):
        dl.load(tmp_path)


def test_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    path = tmp_path / "robot.xml"
    path.write_text("<mujoco/>")

    def refuse(self):
        raise PermissionError("no entry")

    monkeypatch.setattr(type(path), "read_bytes", refuse)
    with pytest.raises(LoadError, match=r"robot\.xml' cannot be read: no entry"):
        dl.load(path)


def test_mujoco_prints_nothing_when_it_refuses(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    handler = mujoco.get_mju_user_warning()
    with pytest.raises(LoadError):
        dl.load("<mujoco><wrong/></mujoco>")
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    assert mujoco.get_mju_user_warning() is handler


# ---- nothing half-built ----------------------------------------------------------------------------------------------------

REFUSED = {
    "body": lambda b: b.add_body("c", mass=NAN),
    "inertia": lambda b: b.add_body("c", mass=1, inertia=(1, 2)),
    "joint": lambda b: b.add_joint("a", "hinge", armature=NAN),
    "axis": lambda b: b.add_joint("a", "hinge", axis=(1, 2)),
    "shape": lambda b: b.add_shape("a", "box", (1, NAN, 1)),
    "connect": lambda b: b.add_connect("a", "b", point=(1, 2), other_point=(0, 0, 0)),
    "weld": lambda b: b.add_weld("a", "b", point=(1, 2)),
    "coupling": lambda b: b.add_coupling("h", polynomial=(1, 2)),
    "actuator": lambda b: b.add_actuator("h", gear=NAN),
    "keyframe": lambda b: b.add_keyframe("k", [NAN]),
    "model": lambda b: b.add_model(ARM, prefix="x", quaternion=(0, 0, 0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused_addition_leaves_the_builder_as_it_was(what):
    b = arm()
    with pytest.raises(DelassusError):
        REFUSED[what](b)
    assert b.build() == ARM
    assert b.add_joint("a", "hinge") == "a_hinge"


def test_failed_build_can_be_corrected_and_repeated():
    b = arm()
    b.add_body("tip", "mount", **SOLID)
    b.add_joint("tip", "slide")
    b.add_keyframe("home", [0, 1, 0, 0, 0])
    with pytest.raises(ModelError, match="'mount' does not exist"):
        b.build()
    b.add_body("mount", "b")
    b.add_joint("mount", "hinge")
    with pytest.raises(ModelError, match="keyframe 'home': expected 7"):
        b.build()
    b.add_keyframe("home", [0, 1, 0, 0, 0, 1, 2])
    model = b.build()
    assert model.body_names == ("world", "a", "b", "mount", "tip")
    assert model.keyframes["home"].tolist() == [0, 1, 0, 0, 0, 1, 2]
    b.gravity = (0, 0)
    with pytest.raises(ArgumentError, match="gravity"):
        b.build()
    b.gravity = (0, 0, -9.81)
    assert b.build() == model


ACCEPTED = {
    "armature stands for inertia": lambda b: (b.add_body("c", "b"), b.add_joint("c", "hinge", armature=0.1)),
    "massless between": lambda b: (b.add_body("c", "b"), b.add_joint("c", "hinge"), b.add_body("d", "c", **SOLID), b.add_joint("d", "hinge", axis=(1, 0, 0))),
    "mass of a fixed child": lambda b: (b.add_body("c", "b"), b.add_joint("c", "ball"), b.add_body("d", "c", **SOLID)),
    "point mass off the axis": lambda b: (b.add_body("c", "b", mass=1, com=(1, 0, 0)), b.add_joint("c", "hinge")),
    "lamina": lambda b: (b.add_body("c", "b", mass=1, inertia=(1, 2, 3)), b.add_joint("c", "hinge")),
    "rounded moments": lambda b: b.add_body("c", "b", mass=1, inertia=(1, 2, 3.001)),
    "massless fixed body": lambda b: b.add_body("c", "b"),
    "rounded quaternion": lambda b: b.add_body("c", "b", quaternion=(0.7071068, 0.7071068, 0, 0)),
    "integers and single precision": lambda b: b.add_body("c", "b", position=[1, 2, 3], com=np.ones(3, np.float32)),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_can_exist_is_not_refused(case):
    b = arm()
    ACCEPTED[case](b)
    model = b.build()
    q = model.random(0)
    assert np.isfinite(dl.forward_dynamics(model, q, model.zero_velocity(), model.zero_velocity())).all()
    assert np.linalg.eigvalsh(dl.mass_matrix(model, q))[0] > 0
    dl.load(model.to_mjcf())
