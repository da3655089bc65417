"""Writes robots as plain numbers, from which the benchmark builds both its models.

    python export.py FILE [NAME ...]

One record a line, in SI units and MuJoCo's conventions:

    robot NAME gravity(3)
    body PARENT position(3) quaternion(4) mass center(3) inertia(xx xy xz yy yz zz)
    joint TYPE BODY anchor(3) axis(3) reference
    armature NV values(NV)
"""

import sys

import numpy as np

ROBOTS = ("go2", "g1", "talos")
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


def write(path, robots):
    with open(path, "w") as out:
        for name, model in robots:
            out.writelines(line + "\n" for line in records(name, model))


if __name__ == "__main__":
    import delassus

    write(sys.argv[1], [(name, delassus.load(name)) for name in sys.argv[2:] or ROBOTS])
