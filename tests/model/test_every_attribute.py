"""Whatever MJCF can say is honoured, listed in ``ignored``, or does not bear on the motion: a verdict on every attribute that this MuJoCo knows, and an experiment on those that bear on it."""

import re
import warnings
import xml.etree.ElementTree as ElementTree

import mujoco
import numpy as np
import pytest

import delassus as dl

HONOURED, LISTED, IRRELEVANT = "honoured", "listed in ignored", "irrelevant to the motion"
# frames that the compiler turns into a position and a quaternion
FRAME = "pos quat axisangle euler xyaxes zaxis"
LABELS = "name class user group"


def verdicts(honoured="", listed="", irrelevant=""):
    groups = ((HONOURED, honoured), (LISTED, listed), (IRRELEVANT, irrelevant))
    return {name: verdict for verdict, names in groups for name in names.split()}


SOFT = "solref solimp"
JOINT = verdicts(
    honoured="type pos axis range limited ref springref stiffness damping springdamper armature frictionloss actuatorfrclimited actuatorfrcrange actuatorgravcomp margin springyield",
    listed="solreflimit solimplimit solreffriction solimpfriction",
    irrelevant=LABELS,
)
GEOM = verdicts(
    honoured=f"{FRAME} type size fromto mass density shellinertia mesh hfield fitscale contype conaffinity condim friction priority margin gap fluidshape fluidcoef surfacevel",
    listed=f"adhesion {SOFT}",
    # solmix mixes softness
    irrelevant=f"{LABELS} solmix material rgba castshadow",
)
PAIR = verdicts(honoured="geom1 geom2 condim friction margin gap", listed=f"adhesion solreffriction {SOFT}", irrelevant="name class")
EQUALITY = verdicts(
    honoured="active anchor body1 body2 site1 site2 relpose torquescale joint1 joint2 polycoef", listed=SOFT, irrelevant="name class"
)
ACTUATOR = verdicts(
    honoured="joint gear gaintype gainprm biastype biasprm ctrllimited ctrlrange forcelimited forcerange kp kv dampratio inheritrange jointinparent tendon site refsite body cranksite "
    "slidersite cranklength dyntype dynprm actdim actlimited actrange actearly timeconst armature damping delay nsample interp input ffrange velrange",
    # muscles read lengthrange; a group acts only where actuatorgroupdisable does
    irrelevant=f"{LABELS} lengthrange",
)
TENDONS = verdicts(
    honoured="limited range actuatorfrclimited actuatorfrcrange frictionloss springlength springyield margin stiffness damping",
    listed="armature solreflimit solimplimit solreffriction solimpfriction",
    irrelevant=f"{LABELS} width material rgba",
)
OTHER_ACTUATORS = ("intvelocity", "orientation", "pid", "damper", "cylinder", "muscle", "adhesion", "dcmotor")
EVERY_ONE_IS_LISTED, NONE_MOVES, BY_THE_COMPILER = {"*": LISTED}, {"*": IRRELEVANT}, {"*": HONOURED}

TABLE = {
    "mujoco": verdicts(irrelevant="model"),
    # what the compiler makes of a file is what we read
    "compiler": BY_THE_COMPILER, "compiler/lengthrange": NONE_MOVES, "size": NONE_MOVES, "statistic": NONE_MOVES,
    "option": verdicts(
        honoured="timestep gravity o_friction ccd_tolerance ccd_iterations sdf_initpoints sdf_iterations wind magnetic density viscosity o_margin actuatorgroupdisable",
        listed="integrator cone impratio solver jacobian iterations tolerance ls_iterations ls_tolerance noslip_iterations noslip_tolerance o_solref o_solimp apirate",
        irrelevant="sleep_tolerance",  # with the flag, which is listed
    ),
    "option/flag": verdicts(
        honoured="contact gravity filterparent multiccd nativeccd override constraint equality frictionloss limit passive spring damper actuation clampctrl",
        listed="eulerdamp refsafe sleep diagexact ipc speculative",
        # speed and reports of MuJoCo itself; autoreset is an UnstableError here
        irrelevant="warmstart sensor midphase autoreset island energy fwdinv invdiscrete",
    ),
    "visual/*": NONE_MOVES, "visual": NONE_MOVES, "custom/*": NONE_MOVES, "custom": NONE_MOVES,
    "extension": NONE_MOVES, "extension/plugin": BY_THE_COMPILER, "extension/plugin/*": BY_THE_COMPILER,  # MuJoCo runs them
    "asset": NONE_MOVES, "asset/mesh": BY_THE_COMPILER, "asset/mesh/*": BY_THE_COMPILER, "asset/hfield": BY_THE_COMPILER, "asset/skin": NONE_MOVES, "asset/skin/*": NONE_MOVES,
    "asset/texture": NONE_MOVES, "asset/material": NONE_MOVES, "asset/material/*": NONE_MOVES, "asset/model": BY_THE_COMPILER,
    "body": verdicts(honoured=f"{FRAME} gravcomp mocap", irrelevant="name childclass user fuse simple sleep"),
    "body/inertial": verdicts(honoured=f"{FRAME} mass diaginertia fullinertia"),
    "body/joint": JOINT, "body/freejoint": verdicts(honoured="align", irrelevant="name group"), "body/geom": GEOM,
    "body/geom/plugin": BY_THE_COMPILER, "body/geom/plugin/*": BY_THE_COMPILER,  # of signed distances: MuJoCo's collisions use them
    "body/attach": BY_THE_COMPILER, "body/composite": BY_THE_COMPILER, "body/composite/*": BY_THE_COMPILER, "body/site": NONE_MOVES, "body/camera": NONE_MOVES, "body/light": NONE_MOVES,
    "body/plugin": BY_THE_COMPILER, "body/plugin/*": BY_THE_COMPILER, "body/flexcomp": EVERY_ONE_IS_LISTED, "body/flexcomp/*": EVERY_ONE_IS_LISTED,
    "deformable": NONE_MOVES, "deformable/flex": EVERY_ONE_IS_LISTED, "deformable/flex/*": EVERY_ONE_IS_LISTED, "deformable/skin": NONE_MOVES, "deformable/skin/*": NONE_MOVES,
    "contact": NONE_MOVES, "contact/pair": PAIR, "contact/exclude": verdicts(honoured="body1 body2", irrelevant="name"),
    "tendon": NONE_MOVES, "tendon/spatial": TENDONS, "tendon/fixed": TENDONS, "tendon/spatial/*": BY_THE_COMPILER, "tendon/fixed/*": BY_THE_COMPILER,
    "equality": NONE_MOVES, "equality/connect": EQUALITY, "equality/weld": EQUALITY, "equality/joint": EQUALITY,
    "equality/tendon": EQUALITY | verdicts(honoured="tendon1 tendon2"), "equality/flex": EVERY_ONE_IS_LISTED, "equality/flexvert": EVERY_ONE_IS_LISTED, "equality/flexstrain": EVERY_ONE_IS_LISTED,
    "actuator": NONE_MOVES, "actuator/general": ACTUATOR, "actuator/motor": ACTUATOR, "actuator/position": ACTUATOR, "actuator/velocity": ACTUATOR,
    **{f"actuator/{kind}": BY_THE_COMPILER for kind in (*OTHER_ACTUATORS, "plugin")},  # MuJoCo computes them
    "actuator/plugin/*": BY_THE_COMPILER,
    "sensor": NONE_MOVES, "sensor/*": BY_THE_COMPILER,
    "keyframe": NONE_MOVES, "keyframe/key": verdicts(honoured="qpos qvel act ctrl time mpos mquat plastic", irrelevant="name"),
}  # fmt: skip


def schema():
    """Every (path of elements, attribute) that this version of MuJoCo reads."""
    found, path = [], []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        head = re.match(r"^( *)(\S+) \((.)\)", line)
        rest = line
        if head:
            depth = len(head[1]) // 3
            path = [*path[:depth], "body" if head[2] == "(world)body" else head[2]]
            rest = line[head.end() :]
            found.append(("/".join(path[1:]) or path[0], None))
        found += [("/".join(path[1:]) or path[0], name) for name in rest.split()]
    return found


def verdict_on(path, attribute):
    parts = path.split("/")
    for known in (path, *("/".join(parts[:k]) + "/*" for k in range(len(parts) - 1, 0, -1))):
        if known in TABLE:
            return TABLE[known].get(attribute, TABLE[known].get("*"))
    return None


# where the elements of <default> stand elsewhere
DEFAULTS = {
    **{kind: f"actuator/{kind}" for kind in ("general", "motor", "position", "velocity", *OTHER_ACTUATORS)},
    "mesh": "asset/mesh", "texture": "asset/texture", "material": "asset/material", "material/layer": "asset/material/layer",
    "joint": "body/joint", "geom": "body/geom", "site": "body/site", "camera": "body/camera", "light": "body/light", "pair": "contact/pair",
}  # fmt: skip


def resolved(path, attribute):
    if path == "default":
        return IRRELEVANT
    if path.startswith("default/"):
        kind = path.removeprefix("default/")
        if kind == "tendon":
            return TENDONS.get(attribute)
        if kind == "equality":
            return EQUALITY.get(attribute)
        return verdict_on(DEFAULTS.get(kind, path), attribute)
    return verdict_on(path, attribute)


def test_schema_is_read_as_mujoco_prints_it():
    known = schema()
    for path, attribute in (
        ("option", "timestep"), ("option/flag", "gravity"), ("body/joint", "frictionloss"), ("actuator/general", "biasprm"), ("keyframe/key", "qvel"), ("default/geom", "condim"),
        ("tendon/spatial/site", "site"), ("body/flexcomp/edge", "stiffness"),
    ):  # fmt: skip
        assert (path, attribute) in known
    assert len(known) > 800


def test_every_attribute_has_a_verdict():
    unknown = [f"{path} {attribute}" for path, attribute in schema() if attribute and resolved(path, attribute) is None]
    assert not unknown, (
        f"MuJoCo {mujoco.mj_versionString()} reads attributes without a verdict: {unknown}. Find out whether they change its motion. If they do, honour them, or list them in "
        "src/delassus/model/omitted.py; then say so in TABLE of this file and add an experiment."
    )


# ---- experiments --------------------------------------------------------------------------------------------------------------

SCENE = """<mujoco model="scene"><compiler angle="radian"/><option><flag/></option><worldbody>
<geom name="floor" type="plane" size="9 9 .1"/>
<body name="box" pos="0 0 .1"><freejoint name="box"/><geom name="box" type="box" size=".1 .1 .1" mass="1"/></body>
<body name="disc" pos="1 0 .0999"><freejoint name="disc"/><geom name="disc" type="cylinder" size=".1 .1" mass="1"/></body>
<body name="puck" pos="2 0 .1"><freejoint name="puck"/><geom name="puck" size=".1" mass="1"/></body>
<body name="arm" pos="4 0 2"><joint name="hinge" axis="0 1 0" damping=".1" stiffness="1" springref=".4" frictionloss=".05" range="-.5 .02"/>
 <geom name="arm" type="capsule" fromto="0 0 0 .5 0 0" size=".05" mass="1"/><site name="tip" pos=".5 0 0"/></body>
<body name="sled" pos="-4 0 2"><joint name="slide" type="slide" axis="1 0 0"/><geom name="sled" size=".1" mass="1"/></body>
<body name="cart" pos="-6 0 2"><joint name="cart" type="slide" axis="0 1 0"/><geom name="cart" size=".1" mass="1"/></body>
<body name="bob" pos="0 4 2"><joint name="ball" type="ball"/><geom name="bob" pos=".3 0 -.3" size=".1" mass="1"/></body>
<body name="one" pos="0 6 2"><joint name="one" axis="0 1 0"/><geom name="one" pos=".2 0 0" size=".1" mass="1"/></body>
<body name="two" pos="0 8 2"><joint name="two" axis="0 1 0"/><geom name="two" pos=".2 0 0" size=".1" mass="1"/></body>
<body name="three" pos="0 -4 2"><joint name="three" axis="0 1 0"/><geom name="three" pos=".2 0 0" size=".1" mass="1"/><site name="s3"/></body>
<body name="free" pos="0 -8 2"><freejoint name="free"/><geom name="free" type="box" size=".1 .2 .3" mass="1"/></body>
<body name="hung" pos="0 -9 3"><freejoint name="hung"/><geom name="hung" type="box" size=".1 .2 .3" mass="1"/></body>
<body name="held" pos="5 5 5"/></worldbody>
<contact><pair name="pair" geom1="disc" geom2="floor"/></contact>
<equality><joint name="couple" joint1="one" joint2="two" polycoef="0 1 0 0 0"/><connect name="pin" body1="free" body2="world" anchor="0 0 0"/>
<weld name="glue" body1="hung" body2="world"/></equality>
<actuator><motor name="motor" joint="hinge" gear="2"/><position name="servo" joint="slide" kp="10" kv="1"/><velocity name="drive" joint="cart" kv="2"/>
<general name="any" joint="three" gainprm="3" biastype="affine" biasprm=".1 -1 -.2"/></actuator><keyframe><key name="start"/></keyframe></mujoco>"""

SPEED = {
    "disc": (0.5, 0.2, 0, 0, 0, 1.0),
    "puck": (0.3, 0.1, 0, 0.2, 0.1, 2.0),
    "free": (0, 0, 0, 0.5, 0.3, 0.2),
    "hung": (0, 0, 0, 0.1, 0.2, 0.3),
    "ball": (0.3, 0.5, 0.1),
}
CONTROL = (0.7, 0.1, 0.3, 0.4)
SECONDS = 0.1


def find(root, selector):
    """An element of the scene by its kind and name; new ones where it says so."""
    kind, _, name = selector.partition(":")
    return next(e for e in root.iter(kind) if not name or e.get("name") == name)


def written(changes):
    root = ElementTree.fromstring(SCENE)
    for selector, attribute, value in changes:
        if selector.startswith("+"):
            find(root, selector[1:]).append(ElementTree.fromstring(value))
        else:
            find(root, selector).set(attribute, value)
    return ElementTree.tostring(root, encoding="unicode")


def load(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dl.load(text)


def speeds(model):
    v = np.zeros(model.nv)
    for name, values in SPEED.items():
        start = model.joint_vadr[model.joint_index(name)]
        v[start : start + len(values)] = values
    return v


def theirs(text, model):
    """State after a tenth of a second in MuJoCo, from its keyframe if that has velocities."""
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    if not d.qvel.any():
        d.qvel[:] = speeds(model)
    if not d.ctrl.any():
        d.ctrl[: len(CONTROL)] = CONTROL
    while d.time < SECONDS - 1e-9:
        mujoco.mj_step(m, d)
    return np.concatenate([d.qpos, d.qvel])


def ours(text, model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = dl.Simulator(text)
    sim.reset("start", None if model.keyframe_velocities else speeds(model))
    control = model.keyframe_controls["start"]
    if not control.any():
        control[: len(CONTROL)] = CONTROL
    # all of the motion: at its end the hinge may rest on its limit, whatever pulls at it
    frames = []
    while sim.time < SECONDS - 1e-9:
        last = sim.step(control=control)
        frames.append(np.concatenate([last.q, last.v]))
    return np.array(frames)


# path of the schema, attribute → changes of the scene; those before NOW are made on both sides of the comparison
NOW = None
TENDON = '<tendon><fixed name="t" {}><joint joint="hinge" coef="1"/></fixed></tendon>'
HONOURED_CASES = {
    ("option", "timestep"): [("option", "timestep", ".004")],
    ("option", "gravity"): [("option", "gravity", "0 1 -5")],
    ("option", "o_friction"): [("flag", "override", "enable"), NOW, ("option", "o_friction", ".1 .1 .1 .1 .1")],
    ("option/flag", "contact"): [("flag", "contact", "disable")],
    ("option/flag", "gravity"): [("flag", "gravity", "disable")],
    ("body", "pos"): [("body:box", "pos", "0 0 .2")],
    ("body/joint", "range"): [("joint:hinge", "range", "-.5 .5")],
    ("body/joint", "ref"): [("joint:hinge", "ref", ".1")],
    ("body/joint", "springref"): [("joint:hinge", "springref", "-.4")],
    ("body/joint", "stiffness"): [("joint:hinge", "stiffness", "3")],
    ("body/joint", "damping"): [("joint:hinge", "damping", ".5")],
    ("body/joint", "springdamper"): [("joint:one", "springdamper", ".1 1")],
    ("body/joint", "armature"): [("joint:hinge", "armature", ".2")],
    ("body/joint", "frictionloss"): [("joint:hinge", "frictionloss", ".5")],
    ("body/joint", "axis"): [("joint:hinge", "axis", "0 1 1")],
    ("body/geom", "condim"): [("pair:pair", "condim", "1")],
    ("body/geom", "contype"): [("body:puck", "pos", "2 0 .0999"), NOW, ("geom:puck", "contype", "2"), ("geom:puck", "conaffinity", "2")],
    ("body/geom", "friction"): [("option", "gravity", "3 0 -9.81"), NOW, ("geom:box", "friction", ".1"), ("geom:floor", "friction", ".1")],
    ("body/geom", "priority"): [("option", "gravity", "3 0 -9.81"), ("geom:box", "friction", ".1"), NOW, ("geom:box", "priority", "1")],
    ("contact/pair", "friction"): [("pair:pair", "friction", ".01 .01 .01 .01 .01")],
    ("equality/joint", "polycoef"): [("joint:couple", "polycoef", ".2 -1 0 0 0")],
    ("equality/connect", "active"): [("connect:pin", "active", "false")],
    ("equality/connect", "anchor"): [("connect:pin", "anchor", ".3 0 0")],
    ("equality/weld", "relpose"): [("weld:glue", "relpose", "0 9 -3.01 1 0 0 0")],
    ("equality/weld", "torquescale"): [("weld:glue", "torquescale", "0")],
    ("keyframe/key", "qvel"): [("key:start", "qvel", " ".join(["1"] * 39))],
    ("actuator/motor", "gear"): [("motor:motor", "gear", "-3")],
    ("actuator/motor", "ctrlrange"): [("motor:motor", "ctrlrange", "-.1 .1")],
    ("actuator/position", "kp"): [("position:servo", "kp", "30")],
    ("actuator/position", "kv"): [("position:servo", "kv", "3")],
    ("actuator/position", "forcerange"): [("position:servo", "forcerange", "-.1 .1")],
    ("actuator/velocity", "kv"): [("velocity:drive", "kv", "5")],
    ("actuator/general", "gainprm"): [("general:any", "gainprm", "5")],
    ("actuator/general", "biasprm"): [("general:any", "biasprm", "1 -3 -1")],
    ("keyframe/key", "qpos"): [("key:start", "qpos", " ".join(["0 0 .3 1 0 0 0", "1 0 .1 1 0 0 0", "2 0 .1 1 0 0 0", ".01 .1 .1", "1 0 0 0", ".1 .1 .1", "0 -8 2 1 0 0 0", "0 -9 3 1 0 0 0"]))],
    ("option", "wind"): [("option", "density", "100"), NOW, ("option", "wind", "5 0 0")],
    ("option", "density"): [("option", "density", "100")],
    ("option", "viscosity"): [("option", "viscosity", "1")],
    ("option", "o_margin"): [("flag", "override", "enable"), NOW, ("option", "o_margin", ".01")],
    ("option", "actuatorgroupdisable"): [("motor:motor", "group", "2"), NOW, ("option", "actuatorgroupdisable", "2")],
    ("option/flag", "constraint"): [("flag", "constraint", "disable")],
    ("option/flag", "equality"): [("flag", "equality", "disable")],
    ("option/flag", "frictionloss"): [("flag", "frictionloss", "disable")],
    ("option/flag", "limit"): [("flag", "limit", "disable")],
    ("option/flag", "passive"): [("flag", "passive", "disable")],
    ("option/flag", "spring"): [("flag", "spring", "disable")],
    ("option/flag", "damper"): [("flag", "damper", "disable")],
    ("option/flag", "actuation"): [("flag", "actuation", "disable")],
    ("option/flag", "clampctrl"): [("motor:motor", "ctrlrange", "-.1 .1"), NOW, ("flag", "clampctrl", "disable")],
    ("body", "gravcomp"): [("body:arm", "gravcomp", ".5")],
    ("body/joint", "type"): [("joint:ball", "range", "0 .01")],
    ("body/joint", "stiffness", "more"): [("joint:ball", "stiffness", "20")],
    ("body/joint", "margin"): [("joint:hinge", "margin", ".1")],
    ("body/joint", "actuatorfrcrange"): [("joint:hinge", "actuatorfrcrange", "-.1 .1")],
    ("body/joint", "springyield"): [("joint:hinge", "springyield", ".01")],
    ("body/geom", "condim", "more"): [("geom:puck", "friction", "1 .1 .1"), NOW, ("geom:puck", "condim", "6")],
    ("body/geom", "margin"): [("geom:box", "margin", ".01")],
    ("contact/pair", "condim"): [("pair:pair", "friction", "1 1 .1 .01 .01"), NOW, ("pair:pair", "condim", "4")],
    ("contact/pair", "margin"): [("pair:pair", "margin", ".01")],
    ("contact/pair", "friction", "more"): [("pair:pair", "friction", ".3 .01")],
    ("equality/tendon", "polycoef"): [("+mujoco", "", TENDON.format("")), NOW, ("+equality", "", '<tendon name="e" tendon1="t" polycoef=".1"/>')],
    ("tendon/fixed", "stiffness"): [("+mujoco", "", TENDON.format('stiffness="5"'))],
    ("tendon/fixed", "frictionloss"): [("+mujoco", "", TENDON.format('frictionloss="5"'))],
    ("tendon/fixed", "range"): [("+mujoco", "", TENDON.format('range="-1 -.1"'))],
    ("actuator/general", "dyntype"): [("general:any", "dyntype", "filter"), ("general:any", "dynprm", ".1")],
    ("actuator/general", "gaintype"): [("general:any", "gaintype", "affine"), ("general:any", "gainprm", "3 1 1")],
    ("actuator/position", "timeconst"): [("position:servo", "timeconst", ".1")],
    ("body/geom", "surfacevel"): [("geom:floor", "surfacevel", "1 0 0 0 0 0")],
    ("actuator/motor", "armature"): [("motor:motor", "armature", ".1")],
    ("actuator/motor", "damping"): [("motor:motor", "damping", ".5")],
    ("actuator/motor", "delay"): [("motor:motor", "delay", ".01"), ("motor:motor", "nsample", "6")],
    ("actuator/motor", "site"): [("+actuator", "", '<general site="s3" gear="0 0 0 0 1 0" biastype="affine" biasprm="1"/>')],
    ("actuator/damper", "kv"): [("+actuator", "", '<damper name="x" joint="one" kv="5" ctrlrange="0 1"/>'), ("key:start", "ctrl", ".7 .1 .3 .4 1")],
    ("actuator/adhesion", "gain"): [("option", "gravity", "12 0 -9.81"), NOW, ("+actuator", "", '<adhesion body="box" gain="20" ctrlrange="0 1"/>'), ("key:start", "ctrl", ".7 .1 .3 .4 1")],
    ("actuator/muscle", "force"): [("+actuator", "", '<muscle joint="one" lengthrange="0 1" force="10"/>'), ("key:start", "ctrl", ".7 .1 .3 .4 1")],
    ("keyframe/key", "ctrl"): [("key:start", "ctrl", "0 0 0 1")],
    ("keyframe/key", "act"): [("general:any", "dyntype", "integrator"), NOW, ("key:start", "act", "1")],
    ("keyframe/key", "time"): [("key:start", "time", ".05")],
}  # fmt: skip
LISTED_CASES = {
    ("option", "integrator"): ("integrator rk4", [("option", "integrator", "RK4")]),
    ("option", "cone"): ("cone elliptic", [("option", "cone", "elliptic")]),
    ("option", "impratio"): ("impratio 10", [("option", "impratio", "10")]),
    ("option", "solver"): ("solver pgs", [("option", "solver", "PGS")]),
    ("option", "iterations"): ("iterations 1", [("option", "iterations", "1")]),
    ("option", "noslip_iterations"): ("noslip_iterations 5", [("option", "noslip_iterations", "5")]),
    ("option", "o_solref"): ("softness", [("flag", "override", "enable"), NOW, ("option", "o_solref", ".1 1")]),
    ("option/flag", "eulerdamp"): ("eulerdamp disabled", [("flag", "eulerdamp", "disable")]),
    ("body/joint", "solreflimit"): ("softness", [("joint:hinge", "solreflimit", ".2 1")]),
    ("body/joint", "solreffriction"): ("softness", [("joint:hinge", "solreffriction", ".2 1")]),
    ("body/geom", "solref"): ("softness", [("geom:box", "solref", ".1 1")]),
    ("body/geom", "solimp"): ("softness", [("geom:box", "priority", "1"), NOW, ("geom:box", "solimp", ".5 .6 .01")]),
    ("body/geom", "adhesion"): ("adhesion of 1 shape", [("option", "gravity", "12 0 -9.81"), NOW, ("geom:box", "adhesion", "3")]),
    ("contact/pair", "solref"): ("softness", [("pair:pair", "solref", ".1 1")]),
    ("contact/pair", "adhesion"): ("adhesion of 1 shape", [("pair:pair", "adhesion", "3")]),
    ("equality/connect", "solref"): ("softness", [("connect:pin", "solref", ".2 1")]),
    ("body/flexcomp", "mass"): ("1 flex", [("+worldbody", "", '<flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" pos="0 0 3" dim="2" mass="1"/>')]),
}  # fmt: skip
LISTED_WITHOUT_MOTION = {
    ("option/flag", "sleep"): ("sleep enabled", [("flag", "sleep", "enable")]),
}
IRRELEVANT_CASES = {
    ("option/flag", "energy"): [("flag", "energy", "enable")],
    ("option/flag", "sensor"): [("flag", "sensor", "disable")],
    ("option/flag", "midphase"): [("flag", "midphase", "disable")],
    ("option/flag", "fwdinv"): [("flag", "fwdinv", "enable")],
    ("option/flag", "autoreset"): [("flag", "autoreset", "disable")],
    ("body/geom", "solmix"): [("geom:box", "solmix", "3")],
    ("body/geom", "rgba"): [("geom:box", "rgba", "1 0 0 1")],
    ("body/geom", "group"): [("geom:box", "group", "3")],
    ("body/geom", "castshadow"): [("geom:box", "castshadow", "false")],
    ("actuator/motor", "lengthrange"): [("motor:motor", "lengthrange", "0 1")],
    ("actuator/motor", "group"): [("motor:motor", "group", "2")],
    ("body", "sleep"): [("body:box", "sleep", "never")],
    ("body", "simple"): [("body:box", "simple", "false")],
    ("size", "memory"): [("+mujoco", "", '<size memory="1M"/>')],
    ("statistic", "extent"): [("+mujoco", "", '<statistic extent="7"/>')],
}  # fmt: skip


def sides(case, changes):
    """The scene without and with what a case is about, skipped where this MuJoCo cannot read it: texts and models."""
    if case not in schema():
        pytest.skip(f"MuJoCo {mujoco.mj_versionString()} has no {case}")
    at = changes.index(NOW) if NOW in changes else -1
    texts = written(changes[: max(at, 0)]), written([c for c in changes if c is not NOW])
    return texts, tuple(map(load, texts))


def moved(motion, texts, models):
    """Whether a motion differs between the two."""
    a, b = (motion(text, model) for text, model in zip(texts, models, strict=True))
    return a.shape != b.shape or float(np.abs(a - b).max()) > 1e-7


def listed(line, models):
    return [any(line in said for said in model.ignored) for model in models]


def test_scene_itself_is_honoured_to_the_last_attribute():
    assert load(SCENE).ignored == ()


@pytest.mark.parametrize("case", HONOURED_CASES, ids=" ".join)
def test_what_is_honoured_changes_both_motions(case):
    texts, models = sides(case[:2], HONOURED_CASES[case])
    assert resolved(*case[:2]) == HONOURED
    assert models[1].ignored == ()
    assert moved(theirs, texts, models)
    assert moved(ours, texts, models)


@pytest.mark.parametrize("case", LISTED_CASES, ids=" ".join)
def test_what_changes_only_their_motion_is_listed(case):
    line, changes = LISTED_CASES[case]
    texts, models = sides(case, changes)
    assert moved(theirs, texts, models)
    assert listed(line, models) == [False, True]


@pytest.mark.parametrize("case", LISTED_WITHOUT_MOTION, ids=" ".join)
def test_what_reports_or_waits_for_a_command_is_listed(case):
    line, changes = LISTED_WITHOUT_MOTION[case]
    assert resolved(*case) == LISTED
    assert listed(line, sides(case, changes)[1]) == [False, True]


@pytest.mark.parametrize("case", IRRELEVANT_CASES, ids=" ".join)
def test_what_is_irrelevant_changes_no_motion_and_is_not_listed(case):
    texts, models = sides(case, IRRELEVANT_CASES[case])
    assert resolved(*case) == IRRELEVANT
    assert models[1].ignored == ()
    assert not moved(theirs, texts, models)
    assert not moved(ours, texts, models)
