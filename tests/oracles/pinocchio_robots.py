"""Robots as Pinocchio reads them itself, and its coordinates beside ours."""

from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
import pytest

from .dense import hat, rotation

pin = pytest.importorskip("pinocchio")

ROBOTS = {
    "go2": ("go2_description/urdf/go2.urdf", True),
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", True),
    "talos": ("talos_data/robots/talos_full_v2.urdf", True),
    "solo": ("solo_description/robots/solo12.urdf", True),
    "panda": ("panda_description/urdf/panda.urdf", False),
}


def urdf(name):
    try:
        folder = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return folder / ROBOTS[name][0]


def robot(name):
    peer = pin.buildModelFromUrdf(str(urdf(name)), *([pin.JointModelFreeFlyer()] if ROBOTS[name][1] else []))
    # drives weigh something, so that armature is compared too
    peer.armature = np.random.default_rng(1).uniform(0.0, 0.1, peer.nv) * (np.arange(peer.nv) >= 6 * ROBOTS[name][1])
    return peer


class Coordinates:
    """Ours against Pinocchio's: v = T v_pin, with T and Ṫ v_pin in one state; joints are matched by name."""

    def __init__(self, model, peer, q, names=None):
        self.q = np.zeros(peer.nq)
        self.T = np.zeros((model.nv, peer.nv))
        self._parts = []
        for j in range(1, peer.njoints):
            kind, iq, iv, n = (
                peer.joints[j].shortname().removeprefix("JointModel"),
                peer.joints[j].idx_q,
                peer.joints[j].idx_v,
                peer.joints[j].nv,
            )
            name = (names or {}).get(peer.names[j], peer.names[j])
            first = name if name in model.joint_names else next(x for x in model.joint_names if x.startswith(f"{name}_"))
            at, ours = model.joint_qadr[model.joint_index(first)], model.joint_vadr[model.joint_index(first)]
            block = np.eye(n)
            if kind == "FreeFlyer":
                p, (w, *xyz) = q[at : at + 3], q[at + 3 : at + 7]
                self.q[iq : iq + 7] = [*p, *xyz, w]
                block[:3, :3] = rotation(q[at + 3 : at + 7])
            elif kind == "Spherical":
                w, *xyz = q[at : at + 4]
                self.q[iq : iq + 4] = [*xyz, w]
            elif kind.startswith("RUB"):
                self.q[iq : iq + 2] = np.cos(q[at]), np.sin(q[at])
            elif kind == "Planar":
                c, s = np.cos(q[at + 2]), np.sin(q[at + 2])
                self.q[iq : iq + 4] = [*q[at : at + 2], c, s]
                block[:2, :2] = [[c, -s], [s, c]]
            else:
                self.q[iq : iq + n] = q[at : at + n]
            self.T[ours : ours + n, iv : iv + n] = block
            self._parts.append((kind, slice(ours, ours + n), slice(iv, iv + n), block))

    def drift(self, v_pin):
        """Ṫ v_pin: what turns are the axes of a base's linear velocity."""
        out = np.zeros(len(self.T))
        for kind, ours, theirs, block in self._parts:
            v = v_pin[theirs]
            if kind == "FreeFlyer":
                out[ours][:3] = block[:3, :3] @ hat(v[3:]) @ v[:3]
            elif kind == "Planar":
                out[ours][:2] = block[:2, :2] @ np.array([-v[1], v[0]]) * v[2]
        return out


def states(model, peer):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        q = model.random(rng)
        yield q, Coordinates(model, peer, q), *rng.standard_normal((3, peer.nv))
