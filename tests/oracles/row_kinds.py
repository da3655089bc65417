"""One constraint of every kind, on a mechanism with every kind of joint."""

import numpy as np

import delassus as dl

from .trees import grow

GAINS = (30.0, 7.0)


def tree():
    """Two trees, one of them free, with every kind of joint."""
    plan = [
        (-1, ("free",), False), (0, ("hinge",), False), (1, ("ball",), False), (2, ("slide",), False), (0, ("hinge", "slide"), False),
        (-1, ("slide", "slide", "hinge"), False), (5, ("hinge",), False), (6, ("ball",), False), (7, ("hinge",), False),
    ]  # fmt: skip
    return grow(plan, (4,))


KINDS = {
    "contact on the world": lambda m: dl.PointContact(m, 4, point=(0.1, 0.2, -0.1), normal=(0.3, -0.2, 1.0), baumgarte=GAINS, other_point=(0.1, 0, 0)),
    "contact of two": lambda m: dl.PointContact(m, 4, point=(0.1, 0.2, -0.1), other=9, other_point=(0, 0.1, 0), normal=(0.3, -0.2, 1.0), baumgarte=GAINS),
    "rolling contact": lambda m: dl.PointContact(m, 3, other=8, torsional_friction=0.02, rolling_friction=0.01, baumgarte=GAINS),
    "connect": lambda m: dl.Connect(m, 3, 9, point=(0.1, 0, 0.2), other_point=(0, 0.2, 0.1), baumgarte=GAINS),
    "weld": lambda m: dl.Weld(m, 4, 9, point=(0.1, 0, 0.2), other_point=(0, 0.2, 0.1), baumgarte=GAINS),
    "weld on the world": lambda m: dl.Weld(m, 4, point=(0.1, 0, 0.2), quaternion=(0.5, 0.5, -0.5, 0.5), baumgarte=(0.0, 3.0)),
    "distance": lambda m: dl.Distance(m, 4, 9, length=0.7, baumgarte=GAINS),
    "distance to a place": lambda m: dl.Distance(m, 4, other_point=(1.0, 2.0, 3.0), baumgarte=(0.0, 3.0)),
    "hinge": lambda m: dl.Hinge(m, 3, 9, axis=(0.1, 1.0, 0.2), other_axis=(1.0, 0.3, 0.2), baumgarte=GAINS),
    "universal": lambda m: dl.Universal(m, 4, 9, axis=(0.1, 1.0, 0.2), other_axis=(1.0, 0.3, 0.2), baumgarte=GAINS),
    "prismatic": lambda m: dl.Prismatic(m, 4, 9, axis=(0.1, 1.0, 0.2), baumgarte=GAINS),
    "cylindrical": lambda m: dl.Cylindrical(m, 4, 9, axis=(0.1, 1.0, 0.2), other_axis=(0.3, 1.0, 0.2), point=(0.1, 0, 0), baumgarte=GAINS),
    "planar": lambda m: dl.Planar(m, 9, 3, axis=(0.1, 1.0, 0.2), other_axis=(0.3, 1.0, 0.2), point=(0.1, 0, 0), baumgarte=GAINS),
    "coupling": lambda m: dl.JointCoupling(m, coordinate(m, 0), coordinate(m, 2), polynomial=(0.1, 0.7, -0.3, 0.2, 0.1), baumgarte=GAINS),
    "value of a joint": lambda m: dl.JointCoupling(m, coordinate(m, 0), polynomial=(0.1, 0, 0, 0, 0), baumgarte=GAINS),
    "friction of a ball": lambda m: dl.JointFriction(m, list(m.joint_type).index("ball"), 0.5, baumgarte=(0.0, 3.0)),
    "limit": lambda m: dl.JointLimit(m, coordinate(m, 2), "upper", bound=0.3, baumgarte=GAINS),
    "centre of mass": lambda m: dl.CenterOfMass(m, target=(0.1, 0.2, 0.3), baumgarte=GAINS),
    "any rows": lambda m: dl.LinkConstraint(m, [(4, np.eye(6)[1:5] + 0.3), (9, np.eye(6)[:4] * 2 - 0.1)], baumgarte=(0.0, 3.0)),
}  # fmt: skip


def coordinate(m, k):
    """The k-th joint that has one coordinate."""
    return [j for j, kind in enumerate(m.joint_type) if kind in ("hinge", "slide")][k]
