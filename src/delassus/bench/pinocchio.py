"""Conversion to Pinocchio's model: joints, inertias, drives; and the same rows of constraints in one pose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraints import Connect, Constraint, PointContact, Weld
from ..errors import ArgumentError
from ..model import Model
from ..spatial import rotation_matrix
from ..state import body_placements

__all__ = ["PinocchioModel"]

Array = NDArray[Any]


class PinocchioModel:
    """Pinocchio's version of our model, and coordinates in one pose: v = T v_pin.

    Each joint becomes a Pinocchio joint of the same name, with its origin at the joint's anchor; fixed bodies are merged into their parents. Pinocchio orders the joints itself.

    Args:
        pin: the module ``pinocchio``.
        model: our model.
        q: (nq,) configuration.

    Attributes:
        model: ``pinocchio.Model``; data: its data.
        q: (nq,) configuration in its coordinates.
        T: (nv, nv) orthogonal matrix.
    """

    def __init__(self, pin: Any, model: Model, q: Array) -> None:
        self._pin, self._ours = pin, model
        peer = self.model = pin.Model()
        peer.name, peer.gravity.linear = model.name, np.array(model.gravity)
        # for every body: the Pinocchio joint that carries it, and its pose in that joint's frame
        self._at: list[tuple[int, Any]] = [(0, pin.SE3.Identity())]
        for b in range(1, model.nbody):
            joint, place = self._at[model.body_parent[b]]
            place = place * pin.SE3(rotation_matrix(model.body_quaternion[b]), np.array(model.body_position[b]))
            for j in np.flatnonzero(model.joint_body == b):
                anchor = pin.SE3(np.eye(3), np.array(model.joint_position[j]))
                free = model.joint_type[j] == "free"
                joint = peer.addJoint(joint, self._joint(int(j)), pin.SE3.Identity() if free else place * anchor, model.joint_names[j])
                place = pin.SE3.Identity() if free else anchor.inverse()
            if model.body_mass[b] > 0:
                mass, c = float(model.body_mass[b]), model.body_com[b]
                about = model.body_inertia[b] + mass * (c @ c * np.eye(3) - np.outer(c, c))  # the body's origin
                # the constructor from mass, centre and inertia would refuse point masses
                inertia = pin.Inertia.FromDynamicParameters(np.r_[mass, mass * c, about[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])
                peer.appendBodyToJoint(joint, inertia, place)
            self._at.append((joint, place))
        self.data = peer.createData()
        self._coordinates(np.asarray(q, dtype=float))

    def _joint(self, j: int) -> Any:
        pin, axis = self._pin, np.array(self._ours.joint_axis[j])
        return {
            "free": pin.JointModelFreeFlyer,
            "ball": pin.JointModelSpherical,
            "hinge": lambda: pin.JointModelRevoluteUnaligned(axis),
            "slide": lambda: pin.JointModelPrismaticUnaligned(axis),
        }[self._ours.joint_type[j]]()

    def _coordinates(self, q: Array) -> None:
        model, peer = self._ours, self.model
        self.q, self.T, armature = np.zeros(peer.nq), np.zeros((model.nv, peer.nv)), np.zeros(peer.nv)
        for j, kind in enumerate(model.joint_type):
            theirs = peer.joints[peer.getJointId(model.joint_names[j])]
            at, to, n = int(model.joint_qadr[j]), theirs.idx_q, theirs.nv
            ours, beside = slice(int(model.joint_vadr[j]), int(model.joint_vadr[j]) + n), slice(theirs.idx_v, theirs.idx_v + n)
            turn = np.eye(n)
            if kind == "free":
                self.q[to : to + 7] = np.r_[q[at : at + 3], q[at + 4 : at + 7], q[at + 3]]
                turn[:3, :3] = rotation_matrix(q[at + 3 : at + 7])
            elif kind == "ball":
                self.q[to : to + 4] = np.r_[q[at + 1 : at + 4], q[at]]
            else:
                self.q[to] = q[at] - model.joint_reference[j]
            self.T[ours, beside] = turn
            armature[beside] = model.dof_armature[ours]
        peer.armature = armature

    def constraints(self, constraints: Sequence[Constraint], q: Array) -> tuple[Any, Any]:
        """Rigid constraints with our rows at q, in our order; and data for them.

        Raises:
            ArgumentError: Pinocchio cannot represent a constraint as a rigid one; the message names it.
        """
        pin, models, datas = self._pin, self._pin.StdVec_RigidConstraintModel(), self._pin.StdVec_RigidConstraintData()
        placements = body_placements(self._ours, q)
        for c in constraints:
            if not isinstance(c, PointContact | Connect | Weld):
                raise ArgumentError(f"not comparable: its rigid constraints are points and frames, and {type(c).__name__} is neither")
            _, rows, data = c._recipe
            (body, other), points, axes = data["bodies"], np.reshape(data["points"], (2, 3)), np.reshape(data["matrix"], (3, 3))
            (joint, place), axes_here = self._at[body], placements[body, :3, :3].T @ axes.T
            sides = [joint, place * pin.SE3(axes_here, points[0])]
            if other:
                there, beside = self._at[other]
                sides += [there, beside * pin.SE3(placements[other, :3, :3].T @ axes.T, points[1])]
            else:  # on the world, wherever the first point is
                sides += [0, pin.SE3(axes.T, placements[body, :3, :3] @ points[0] + placements[body, :3, 3])]
            kind = pin.ContactType.CONTACT_6D if rows == 6 else pin.ContactType.CONTACT_3D
            models.append(pin.RigidConstraintModel(kind, self.model, *sides, pin.ReferenceFrame.LOCAL))
            datas.append(models[-1].createData())
        return models, datas

    def contact_sets(self, constraints: Sequence[Constraint]) -> tuple[Any, Any, Array]:
        """Constraints whose forces are in our sets, data for them, and the places of its rows among ours: its normals come last.

        Raises:
            ArgumentError: a set that is neither a cone nor free.
        """
        pin, models, datas = self._pin, self._pin.StdVec_ConstraintModel(), self._pin.StdVec_ConstraintData()
        order: list[int] = []
        here = (1, pin.SE3.Identity(), 0, pin.SE3.Identity())  # the matrix is given, so placements are not used
        for c in constraints:
            first, turned = len(order), isinstance(c, PointContact)
            if isinstance(c, PointContact):
                made = pin.PointContactConstraintModel(self.model, *here)
                made.setFriction(c.friction)
            elif isinstance(c, Connect | Weld):
                made = (pin.PointAnchorConstraintModel if c.rows == 3 else pin.FrameAnchorConstraintModel)(self.model, *here)
            else:
                raise ArgumentError(f"not comparable: {type(c).__name__} is no contact, point or frame")
            order += [first + 1, first + 2, first] if turned else range(first, first + c.rows)
            models.append(pin.ConstraintModel(made))
            datas.append(models[-1].createData())
        return models, datas, np.array(order)
