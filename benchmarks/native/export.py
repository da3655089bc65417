"""Writes robots and scenes as plain numbers, from which the benchmarks build both their models.

    python export.py tree FILE [NAME ...]      robots; the same of derivatives
    python export.py operator FILE [NAME ...]  scenes: a robot, its state and its constraints
    python export.py explicit FILE [NAME ...]  robots held by feet, hands and fingertips, likewise
    python export.py loops FILE [NAME ...]     scenes with rows between bodies: cassie, boxes, and mechanisms of many loops
    python export.py dynamics FILE [NAME ...]  those, then chains and binary trees held at their ends
    python export.py constrained-derivatives FILE [NAME ...]  robots held by their feet, then chains held at their ends
    python export.py counts FILE [NAME ...]    a few scenes, all of which come with the package

One record a line, in SI units and MuJoCo's conventions:

    robot NAME gravity(3)
    body PARENT position(3) quaternion(4) mass center(3) inertia(xx xy xz yy yz zz)
    joint TYPE BODY anchor(3) axis(3) reference
    armature NV values(NV)
    state NQ values(NQ)
    points BODY OTHER point(3) other_point(3) axes(9)       three rows: of BODY minus of OTHER, along the axes, which are rows in world axes
    weld BODY OTHER point(3) other_point(3) axes(9)         six rows: then the rotation of BODY minus of OTHER, about the axes
    friction VELOCITY COUNT                                 COUNT rows: velocities of a joint, from VELOCITY on
"""

import sys

import numpy as np

import delassus

ROBOTS = ("go2", "g1", "talos")
COUNTED = ("go2-standing", "g1-standing", "g1-fallen", "cassie-standing", "box-pyramid")
FEET = ("go2-F3x4", "g1-F6x2", "talos-F6x2", "atlas_hands-F6x2")
LOOPS = (
    "cassie-standing",
    "box-stack",
    "box-pyramid",
    "pyramid-with-robots",
    "ladder-10",
    "ladder-40",
    "ladder-160",
    "stewart-4",
    "stewart-16",
    "ring-100",
)
SWIMMERS = (100, 1000, 10000)
CHAINS = (10, 20, 50, 100, 200, 500, 1000)  # links
TREES = (2, 3, 4, 5, 6, 7, 8)  # levels of branches of three links
UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def numbers(*values):
    return " ".join(repr(float(x)) for x in np.concatenate([np.ravel(v) for v in values]))


def records(name, model):
    yield f"robot {name} {numbers(model.gravity)}"
    for b in range(model.nbody):
        inertia = [model.body_inertia[b][i] for i in UPPER]
        place = numbers(model.body_position[b], model.body_quaternion[b])
        mass = numbers(model.body_mass[b], model.body_com[b], inertia)
        yield f"body {max(int(model.body_parent[b]), 0)} {place} {mass}"
    for j, kind in enumerate(model.joint_type):
        place = numbers(model.joint_position[j], model.joint_axis[j], model.joint_reference[j])
        yield f"joint {kind} {int(model.joint_body[j])} {place}"
    yield f"armature {model.nv} {numbers(model.dof_armature)}"


def scene_records(scene):
    yield from records(scene.name, scene.model)
    yield f"state {scene.model.nq} {numbers(scene.q)}"
    for c in scene.constraints:
        _, rows, data = c._recipe
        if isinstance(c, delassus.PointContact | delassus.Connect | delassus.Weld):
            body, other = data["bodies"]
            yield f"{'weld' if rows == 6 else 'points'} {body} {other} {numbers(data['points'], data['matrix'])}"
        elif isinstance(c, delassus.JointFriction):
            yield f"friction {data['joints'][0]} {rows}"
        else:
            raise TypeError(f"{scene.name}: the benchmark knows PointContact, Connect, Weld and JointFriction, got {c!r}")


def scene_of(name):
    kind, _, size = name.partition("-")
    return delassus.scenes.swimmer_scene(int(size)) if kind == "swimmer" else delassus.scenes.load(name)


def looped_scene(name):
    """Load a scene, or make a mechanism of many loops where these are closed."""
    kind, _, size = name.partition("-")
    make = {"ladder": delassus.scenes.ladder, "stewart": delassus.scenes.stewart_platforms, "ring": delassus.scenes.ring}.get(kind)
    if make is None:
        return delassus.scenes.load(name)
    model = make(int(size))
    return delassus.scenes.Scene(name, model, model.neutral(), tuple(delassus.constraints.from_loop(model, loop) for loop in model.loops))


def held_scene(name):
    """Make a chain whose last link is welded to the world, or a tree whose leaves are pinned, bent in a wave; or load a contact set."""
    kind, _, size = name.partition("-")
    if kind not in ("chain", "tree"):
        return delassus.scenes.contact_set(name)
    model = delassus.scenes.chain(int(size)) if kind == "chain" else delassus.scenes.binary_tree(int(size))
    parents = set(model.body_parent)
    ends = [b for b in range(1, model.nbody) if b not in parents]
    held = delassus.Weld if kind == "chain" else delassus.Connect
    q = 0.4 * np.sin(0.7 * np.arange(model.nq) + 0.4)
    return delassus.scenes.Scene(name, model, q, tuple(held(model, b, point=(0.0, 0.0, -0.2)) for b in ends))


def groups(kind):
    """Names of all that a benchmark is run on, by groups that run in a process each: what is large does not lie in the memory of what is small."""
    return {
        "tree": (ROBOTS,),
        "derivatives": ((*ROBOTS, "atlas_hands"),),
        "operator": (tuple(delassus.scenes.names), tuple(f"swimmer-{n}" for n in SWIMMERS)),
        "explicit": (tuple(delassus.scenes.contact_sets),),
        "loops": (LOOPS,),
        "dynamics": (tuple(delassus.scenes.contact_sets), tuple(f"chain-{n}" for n in CHAINS) + tuple(f"tree-{n}" for n in TREES)),
        "constrained-derivatives": (FEET, tuple(f"chain-{n}" for n in CHAINS)),
        "counts": (COUNTED,),
    }[kind]


def write(kind, path, names=()):
    """Write those named, or every one."""
    make = {"tree": delassus.load, "derivatives": delassus.load, "operator": scene_of, "loops": looped_scene, "counts": scene_of}.get(
        kind, held_scene
    )
    with open(path, "w") as out:
        for name in names or (name for group in groups(kind) for name in group):
            made = make(name)
            out.writelines(line + "\n" for line in (records(name, made) if make is delassus.load else scene_records(made)))


if __name__ == "__main__":
    write(*sys.argv[1:3], sys.argv[3:])
