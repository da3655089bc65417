"""URDF prepared for MuJoCo, its dynamics kept as written."""

from __future__ import annotations

import re
import shlex
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from .._door import numbers, unknown
from ..errors import ArgumentError, ArgumentTypeError, LoadError
from .checks import is_physical
from .compiled import Compiled, compiled
from .geometry import counted
from .loops import across
from .packages import Finder, folders
from .urdf_shapes import Lost, UrdfShapes

JOINTS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_TAGS = ("link", "joint", "material", "inertial", "collision", "visual")
_SEMANTIC = ("group", "group_state", "disable_collisions", "virtual_joint", "end_effector", "passive_joint")  # elements of SRDF
# attributes of a joint, with the number of values of each
_NUMBERS = {
    ("origin", "xyz"): 3, ("origin", "rpy"): 3, ("axis", "xyz"): 3, ("limit", "lower"): 1, ("limit", "upper"): 1, ("limit", "effort"): 1, ("limit", "velocity"): 1,
    ("dynamics", "damping"): 1, ("dynamics", "friction"): 1, ("mimic", "multiplier"): 1, ("mimic", "offset"): 1,
}  # fmt: skip
_LEAST_AXIS = 1e-10
NO_RANGE = ", so it has none"  # ends lines about limits that leave no range
SUBSTITUTES = ("ball", "spherical", "universal")  # joint types that can replace those of a URDF


@dataclass(frozen=True)
class UrdfOptions:
    """Options for what a URDF itself cannot specify.

    Attributes:
        floating_base: let the root float.
        joints: joints to replace, name → type.
        package_dirs: folders of the packages named in it.
        exclude_overlaps: let links that overlap in the reference configuration pass through each other.
    """

    floating_base: bool = False
    joints: Mapping[str, Any] = field(default_factory=dict)
    package_dirs: Any = None
    exclude_overlaps: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "package_dirs", folders(self.package_dirs))
        for name in ("floating_base", "exclude_overlaps"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ArgumentTypeError(f"{name}: expected True or False, got {type(getattr(self, name)).__name__}.")
        if not isinstance(self.joints, Mapping):
            raise ArgumentTypeError(f"joints: expected a dictionary of names and types, got {type(self.joints).__name__}.")

    def refuse(self, what: str) -> None:
        """Raise an error if any option is given for something other than a URDF."""
        if self.floating_base:
            raise ArgumentError(f"floating_base: only a URDF can get a floating base, got {what}. Give its base a free joint instead.")
        if self.joints:
            raise ArgumentError(f"joints: only those of a URDF can be substituted, got {what}. Change the joints in the file instead.")
        if self.package_dirs:
            raise ArgumentError(f"package_dirs: only a URDF names packages, got {what}. Leave it out.")


@dataclass(frozen=True)
class UrdfDetails:
    """Content of a URDF, for a report.

    Attributes:
        links: number of links.
        joints: joint type → number.
        shapes: role → kind → number.
        lost: shapes that are left out.
        flat: files of collision meshes that are flat.
        thinned: file of a collision mesh → number of corners of its hull, of which only the outermost are kept.
        packages: name → folder, None if it is not found.
        overlaps: pairs of links that overlap in the reference configuration, and pass through each other.
        massless: links without mass.
        roots: links that are not the child of any joint.
        unlimited: revolute and prismatic joints without limits.
        unread: tag → number of elements that URDF leaves to other programs.
    """

    links: int
    joints: dict[str, int]
    shapes: dict[str, dict[str, int]]
    lost: tuple[Lost, ...]
    flat: tuple[str, ...]
    thinned: dict[str, int]
    packages: dict[str, Path | None]
    overlaps: tuple[tuple[str, str], ...]
    massless: tuple[str, ...]
    roots: tuple[str, ...]
    unlimited: tuple[str, ...]
    unread: dict[str, int]


def from_urdf(root: ElementTree.Element, options: UrdfOptions, path: Path | None, where: str) -> Compiled:
    """Prepare a URDF for MuJoCo: fixed links remain bodies, inertias are kept as written, collision and visual shapes are read here."""
    _refuse_xacro(root, where)
    _check_structure(root, where)
    floating_base = options.floating_base
    links = root.findall("link")
    types = Counter(joint.get("type") or "none" for joint in root.findall("joint"))
    children = {child.get("link") for child in root.findall("joint/child")}
    roots = tuple(link.get("name") or "" for link in links if link.get("name") not in children)
    unlimited = tuple(
        j.get("name") or "" for j in root.findall("joint") if j.get("type") in ("revolute", "prismatic") and j.find("limit") is None
    )
    unread = Counter(child.tag for child in root if child.tag not in ("link", "joint", "material", "mujoco"))
    shapes = UrdfShapes(Finder(path, options.package_dirs))
    shapes.take_from(root)
    if floating_base:
        if roots == ("world",):
            raise LoadError(
                f"floating_base: the root of {where} is the link 'world', which is the ground. Remove it and its joint, or make that joint floating and leave floating_base out."
            )
        if len(roots) != 1:
            raise LoadError(
                f"floating_base: expected one root, a link that is no joint's child, got {list(roots)} in {where}. Join the others to it."
            )
        ElementTree.SubElement(root, "link", {"name": "world"})
        joint = ElementTree.SubElement(root, "joint", {"name": "root", "type": "floating"})
        ElementTree.SubElement(joint, "parent", {"link": "world"})
        ElementTree.SubElement(joint, "child", {"link": roots[0]})
    extension = root.find("mujoco")
    if extension is None:
        extension = ElementTree.SubElement(root, "mujoco")
    compiler = extension.find("compiler")
    if compiler is None:
        compiler = ElementTree.SubElement(extension, "compiler")
    if path is not None and compiler.get("meshdir"):
        shapes.folders = (path.parent / compiler.get("meshdir", ""),)
    adjusts = any(compiler.get(key) for key in ("balanceinertia", "boundmass", "boundinertia", "inertiafromgeom", "settotalmass"))
    for key, value in {"fusestatic": "false", "strippath": "false", "discardvisual": "false"}.items():
        compiler.set(key, value)
    inertials = {} if adjusts else {link.get("name"): _take_inertial(link, where) for link in links}
    held = [] if adjusts else _hold_massless(root, {name: mass for name, (mass, *_) in inertials.items()}, options.joints)
    unread_mimics = _drop_own_mimics(root)
    # a substituted joint has no limits, and does not mimic another
    for joint in root.findall("joint"):
        if joint.get("name") in options.joints and joint.get("type") != "fixed":
            joint.set("type", "continuous")
            for part in (*joint.findall("limit"), *joint.findall("mimic")):
                joint.remove(part)
    carried = {joint.get("name") or "": child.get("link") or "" for joint in root.findall("joint") for child in joint.findall("child")}
    text = ElementTree.tostring(root, encoding="unicode")

    def make() -> mujoco.MjSpec:
        spec = mujoco.MjSpec.from_string(text)
        _substitute(spec, options.joints, carried)
        shapes.add_to(spec, where)
        return spec

    spec, said = compiled(make, where)
    model, omitted = compiled(spec.compile, where)
    overlaps: tuple[tuple[str, str], ...] = ()
    if options.exclude_overlaps and (overlaps := overlapping(model)):
        for k, (one, two) in enumerate(overlaps):
            spec.add_exclude(name=f"overlap_{k}", bodyname1=one, bodyname2=two)
        model, omitted = compiled(spec.compile, where)
    # mimics and limits are counted by _unread
    omitted = tuple(line for line in said + omitted if "<mimic>" not in line and "lower and upper limits" not in line)
    omitted += unread_mimics + _unread(root, model)
    if held:
        some = ", ".join(held[:3]) + (" …" if len(held) > 3 else "")
        omitted += (f"motion of {counted(len(held), 'joint')} that move{'s' if len(held) == 1 else ''} links without mass ({some})",)
    omitted += tuple(shapes.lines())
    if overlaps:
        some = ", ".join(f"{one} and {two}" for one, two in overlaps[:3]) + (" …" if len(overlaps) > 3 else "")
        omitted += (f"collisions of {counted(len(overlaps), 'pair')} of links that overlap in the reference configuration ({some})",)

    # many links have made-up inertias: they are lowered to what their mass can have
    for name, (mass, center, axes, moments) in inertials.items():
        if mass >= 0 and not is_physical(mass, *moments):
            omitted += (f"inertia of link {name!r} beyond what is physical (lowered to what its mass can have)",)
            a, b, c = np.maximum(moments, 0.0) if mass > 0 else np.zeros(3)
            moments = (a, b, min(c, a + b))
        body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name or "")
        if body > 0:
            model.body_mass[body], model.body_ipos[body] = mass, center
            model.body_iquat[body], model.body_inertia[body] = axes, moments
    if inertials:
        compiled(lambda: mujoco.mj_setConst(model, mujoco.MjData(model)), where)
    ids = (mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, name) for name in shapes.drawn_names)
    details = UrdfDetails(
        len(links), dict(types), shapes.counts, tuple(shapes.lost), tuple(shapes.flat), dict(shapes.thinned), shapes.finder.packages, overlaps,
        tuple(name or "" for name, (mass, *_) in inertials.items() if mass == 0 and name != "world"), roots, unlimited, dict(unread),
    )  # fmt: skip
    return Compiled(model, root.get("name"), omitted, carried, frozenset(ids), details)


def overlapping(m: mujoco.MjModel, depth: float = 1e-4) -> tuple[tuple[str, str], ...]:
    """Pairs of bodies whose shapes overlap by more than a depth [m] in the reference configuration, and would be pushed apart there."""
    d = mujoco.MjData(m)
    mujoco.mj_kinematics(m, d)
    mujoco.mj_comPos(m, d)
    mujoco.mj_collision(m, d)
    pairs = []
    for k in range(d.ncon):
        contact = d.contact[k]
        if contact.dist < -depth:
            one, two = sorted(int(m.geom_bodyid[g]) for g in contact.geom)
            pairs.append((one, two))
    return tuple((m.body(one).name, m.body(two).name) for one, two in sorted(set(pairs)))


def _hold_massless(root: ElementTree.Element, mass: Mapping[str | None, float], told: Mapping[str, Any]) -> list[str]:
    """Fix joints that move no mass, whose acceleration is undefined; returns their names. If no link has mass, none is fixed."""
    if not any(mass.values()):
        return []
    joints = root.findall("joint")
    below: dict[str | None, list[str | None]] = {}
    for joint in joints:
        below.setdefault(_end_of(joint, "parent"), []).append(_end_of(joint, "child"))

    def carries(link: str | None, passed: frozenset[str | None]) -> bool:
        if mass.get(link) or link in passed:
            return True
        return any(carries(child, passed | {link}) for child in below.get(link, ()))

    held = []
    for joint in joints:
        name = joint.get("name") or ""
        moves = joint.get("type") not in ("fixed", "floating")
        if moves and name not in told and not carries(_end_of(joint, "child"), frozenset()):
            joint.set("type", "fixed")
            for part in (*joint.findall("limit"), *joint.findall("mimic")):
                joint.remove(part)
            held.append(name)
    return held


def _end_of(joint: ElementTree.Element, end: str) -> str | None:
    """Return the link at one end of a joint, "parent" or "child"."""
    element = joint.find(end)
    return None if element is None else element.get("link")


def _refuse_xacro(root: ElementTree.Element, where: str) -> None:
    """Raise an error if macros are not expanded."""
    tag = next((e.tag for e in root.iter() if isinstance(e.tag, str) and "xacro" in e.tag.lower()), None)
    if tag is not None:
        raise xacro_error(where, f"the element <xacro:{tag.rpartition('}')[2]}>")
    for part in (*root.findall("link"), *root.findall("joint"), *root.findall("material")):
        for element in part.iter():
            for key, value in element.attrib.items():
                if re.search(r"\$[({]", value):
                    raise xacro_error(where, f"the expression {key}={value!r} in {part.tag} {part.get('name')!r}")


def xacro_error(where: str, what: str) -> LoadError:
    """Make the error that explains how to expand macros."""
    name = where.strip("'\"") if where != "the text" else "robot.urdf.xacro"
    target = name.removesuffix(".xacro").removesuffix(".urdf") + "_expanded.urdf"
    return LoadError(
        f"source: {where} is xacro, not yet URDF: it has {what}. Expand it first: xacro {shlex.quote(name)} > {shlex.quote(target)}  (pip install xacro, or from ROS)."
    )


def _check_structure(root: ElementTree.Element, where: str) -> None:
    """Raise an error if names are missing or repeated, or joints refer to missing links: MuJoCo's messages say less."""
    for tag in ("link", "joint"):
        names = Counter(element.get("name") for element in root.findall(tag))
        if None in names or "" in names:
            raise LoadError(f"source: {where}: every <{tag}> needs a name.")
        if repeated := [name for name, n in names.items() if n > 1]:
            raise LoadError(f"source: {where}: {tag} names must differ, got {names[repeated[0]]} of name {repeated[0]!r}. Rename them.")
    links = {link.get("name") for link in root.findall("link")}
    capital = next((e.tag for e in (*root, *root.findall("link/*")) if e.tag not in _TAGS and e.tag.lower() in _TAGS), None)
    if capital is not None:
        raise LoadError(f"source: {where}: URDF has no <{capital}>: write <{capital.lower()}>.")
    if not links:
        semantic = (
            " It is an SRDF, which only adds to a URDF: give the URDF." if any(root.find(tag) is not None for tag in _SEMANTIC) else ""
        )
        raise LoadError(f"source: {where}: expected at least one <link>, got none.{semantic}")
    for joint in root.findall("joint"):
        name, kind = joint.get("name"), joint.get("type")
        if kind not in JOINTS:
            raise unknown(f"source: {where}: joint {name!r}: type", kind, JOINTS)
        for end in ("parent", "child"):
            link = _end_of(joint, end)
            if link is None:
                raise LoadError(f"source: {where}: joint {name!r} needs <{end} link=…>.")
            if link not in links:
                raise LoadError(f"source: {where}: joint {name!r}: its {end} is link {link!r}, which does not exist.")
        _check_numbers(joint, f"source: {where}: joint {name!r}")
    children = Counter(child.get("link") for child in root.findall("joint/child"))
    if twice := [link for link, n in children.items() if n > 1]:
        raise LoadError(
            f"source: {where}: link {twice[0]!r} is the child of {children[twice[0]]} joints; a tree has one. Close the loop with the argument loops instead."
        )
    if not links - set(children):
        raise LoadError(
            f"source: {where}: every link is the child of a joint, so none is the root. Close the loop with the argument loops instead of a joint."
        )
    for joint in root.findall("joint"):
        parent = _end_of(joint, "parent")
        if joint.get("type") == "floating" and parent != "world":
            way = "use another type" if parent in children else f"name {parent!r} 'world', or remove it and load with floating_base=True"
            raise LoadError(
                f"source: {where}: joint {joint.get('name')!r} is floating below link {parent!r}. Only a child of the link 'world' can float: {way}."
            )
        if _end_of(joint, "child") == "world":
            raise LoadError(
                f"source: {where}: link 'world' is the child of joint {joint.get('name')!r}, but 'world' is the ground. Rename the link."
            )


def _check_numbers(joint: ElementTree.Element, what: str) -> None:
    """Raise where an attribute of a joint is not the numbers that it should be."""
    for (tag, key), n in _NUMBERS.items():
        element = joint.find(tag)
        text = None if element is None else element.get(key)
        if text is None:
            continue
        try:
            values = [float(word) for word in text.split()]
        except ValueError:
            values = []
        bounds = tag == "limit"  # may be infinite
        if len(values) != n or not (np.isfinite(values) | (bounds & np.isinf(values))).all():
            raise LoadError(f"{what}: <{tag}> expects {counted(n, 'number' if bounds else 'finite number')} in {key}, got {text!r}.")
        if tag == "axis" and joint.get("type") not in ("fixed", "floating") and not np.linalg.norm(values) > _LEAST_AXIS:
            raise LoadError(f"{what}: <axis> expects a direction, got {text!r}.")


def _substitute(spec: mujoco.MjSpec, joints: Mapping[str, Any], carried: Mapping[str, str]) -> None:
    """Replace some joints of a URDF: by balls, or by universal joints, which are two hinges of one body."""
    for name, wanted in joints.items():
        if name not in carried:
            raise unknown("joints: joint", name, carried)
        said = wanted if isinstance(wanted, Mapping) else {"type": wanted}
        if said.get("type") not in SUBSTITUTES:
            raise unknown(f"joints[{name!r}]: type", said.get("type"), SUBSTITUTES)
        if strange := sorted(set(said) - {"type", "axis", "other_axis"}):
            raise unknown(f"joints[{name!r}]: argument", strange[0], ("type", "axis", "other_axis"))
        body = spec.body(carried[name])
        # a fixed joint of the URDF does not exist in MuJoCo
        joint = spec.joint(name) or body.add_joint(name=name)
        joint.limited, joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE, mujoco.mjtLimited.mjLIMITED_FALSE
        if said["type"] != "universal":
            joint.type = mujoco.mjtJoint.mjJNT_BALL
            continue
        axes = _universal_axes(said, np.array(joint.axis), f"joints[{name!r}]")
        joint.type, joint.axis = mujoco.mjtJoint.mjJNT_HINGE, axes[0]
        second = body.add_joint(name=f"{name}_2", type=mujoco.mjtJoint.mjJNT_HINGE, axis=axes[1], pos=joint.pos)
        second.damping, second.frictionloss, second.armature = joint.damping, joint.frictionloss, joint.armature


def _universal_axes(said: Mapping[str, Any], own: Any, what: str) -> tuple[Any, Any]:
    """Both axes of a universal joint: those given, else that of the URDF's joint and a coordinate axis perpendicular to it."""
    first = numbers(said.get("axis", own), f"{what}: axis", (3,))
    if not first.any():
        raise ArgumentError(f"{what}: axis: expected a direction other than zero, got {first.tolist()}.")
    second = numbers(said.get("other_axis", across(first)), f"{what}: other_axis", (3,))
    if not np.linalg.norm(np.cross(first, second)) > 1e-6 * np.linalg.norm(first) * np.linalg.norm(second):
        raise ArgumentError(f"{what}: other_axis: expected a direction other than that of axis {first.tolist()}, got {second.tolist()}.")
    return first, second


def _drop_own_mimics(root: ElementTree.Element) -> tuple[str, ...]:
    """Remove <mimic> elements of joints that mimic themselves, which MuJoCo refuses; returns lines about them."""
    lines = []
    for joint in root.findall("joint"):
        for mimic in joint.findall("mimic"):
            if mimic.get("joint") == joint.get("name"):
                joint.remove(mimic)
                lines.append(f"mimic of joint {joint.get('name')!r}: it follows itself")
    return tuple(lines)


def _unread(root: ElementTree.Element, model: mujoco.MjModel) -> tuple[str, ...]:
    """Lines about mimic joints without a leader or that this MuJoCo does not read, and about limits with an empty range."""
    omitted: tuple[str, ...] = ()
    couplings = int(np.count_nonzero(model.eq_type == mujoco.mjtEq.mjEQ_JOINT))
    moving = {joint.get("name") for joint in root.findall("joint") if joint.get("type") != "fixed"}
    mimics = {joint.get("name"): mimic.get("joint") for joint in root.findall("joint") if joint.get("name") in moving and (mimic := joint.find("mimic")) is not None}  # fmt: skip
    lost = {name: leader for name, leader in mimics.items() if leader not in moving}
    omitted += tuple(f"mimic of joint {name!r}: it follows joint {leader!r}, which does not exist or does not move" for name, leader in lost.items())  # fmt: skip
    if len(mimics) - len(lost) > couplings:
        omitted += (counted(len(mimics) - len(lost) - couplings, "mimic joint"),)
    for joint in root.findall("joint"):
        name, limit = joint.get("name") or "", joint.find("limit")
        id_ = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
        if limit is None or joint.get("type") not in ("revolute", "prismatic") or id_ < 0 or model.jnt_limited[id_]:
            continue
        low, high = _number(limit, "lower"), _number(limit, "upper")
        if low == -np.inf and high == np.inf:
            continue
        how = "equal lower and upper limits" if low == high else f"a lower limit {low:g} above its upper limit {high:g}"
        omitted += (f"joint {name!r} has {how}{NO_RANGE}",)
    return omitted


def _number(element: ElementTree.Element, key: str) -> float:
    """Return the number of an attribute, 0 if it is missing."""
    try:
        return float(element.get(key, "0"))
    except ValueError:
        return float("nan")


def _take_inertial(link: ElementTree.Element, where: str) -> tuple[float, Any, Any, Any]:
    """Mass, centre, principal axes and moments of a link. MuJoCo gets placeholders that it can neither refuse nor simplify.

    It would refuse massless links and published numbers whose rounding breaks the triangle inequality.
    """

    def read(tag: str, keys: str, default: str, n: int) -> list[float]:
        element = inertial.find(tag) if inertial is not None else None
        text = " ".join(default if element is None else element.get(key, default) for key in keys.split())
        try:
            values = [float(x) for x in text.split()]
        except ValueError:
            values = []
        if len(values) != n or not np.isfinite(values).all():
            raise LoadError(
                f"source: {where}: link {link.get('name')!r}: <{tag}> expects {counted(n, 'finite number')} in {keys}, got {text!r}."
            )
        return values

    inertial = link.find("inertial")
    xyz, rpy = read("origin", "xyz", "0 0 0", 3), read("origin", "rpy", "0 0 0", 3)
    (mass,) = read("mass", "value", "0", 1)
    xx, xy, xz, yy, yz, zz = read("inertia", "ixx ixy ixz iyy iyz izz", "0", 6)
    turn, axes = np.empty(4), np.empty(4)
    mujoco.mju_euler2Quat(turn, rpy, "XYZ")
    moments, R = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    mujoco.mju_mat2Quat(axes, (R * [1.0, 1.0, np.linalg.det(R)]).ravel())
    mujoco.mju_mulQuat(axes, turn, axes)

    if inertial is not None:
        link.remove(inertial)
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", {"xyz": "1 2 3", "rpy": "1 2 3"})
    ElementTree.SubElement(inertial, "mass", {"value": "1"})
    ElementTree.SubElement(inertial, "inertia", {"ixx": "2", "iyy": "3", "izz": "4", "ixy": "0", "ixz": "0", "iyz": "0"})
    return mass, xyz, axes, moments
