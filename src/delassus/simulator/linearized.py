"""Linearization of a simulation step: products with its Jacobian and the transpose, and matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._door import columns_of
from .._html import table
from ..errors import StaleError
from ..model import Model
from ..types import ContactMode

if TYPE_CHECKING:
    from .step_result import StepResult

__all__ = ["LinearizedStep", "ParameterAdjoint", "StepAdjoint", "StepTangent"]

Array = NDArray[Any]
_MODES: tuple[ContactMode, ...] = ("open", "sticking", "sliding")

# What a derivative may leave out, by the core's names.
_GAPS = {
    "contradiction": "rows that contradict each other limited the position correction: its extent is taken as fixed",
    "open_loops": "a loop was wide open: its closing motion is taken as fixed",
    "tendons": "directions of the rows of tendons and ball-joint limits are taken as fixed",
    "moved_bodies": "velocities of mocap bodies and of moving surfaces at contacts are taken as fixed",
    "bounce": "contacts bounced with only a part of their restitution: that part is taken as fixed",
    "contacts": "a contact was not found again after displacing its bodies: it is treated as a corner on a face",
    "smoothing": "forces on the central path were not found, or contacts bounced: the contact law is not smoothed",
    "singular": "the linear equation of the contact forces could not be solved",
    "isolated": "contacts, limits and dry friction depend on each other in this configuration only: the step has a kink here",
}


class StepTangent(NamedTuple):
    """Change of the state after a step: ``q`` (tangent space) and ``v``, (nv,) each, or (nv, k) for k directions."""

    q: Array
    v: Array


class StepAdjoint(NamedTuple):
    """Derivatives of a scalar with respect to ``q`` (tangent space), ``v``, ``tau`` (nv,), ``control`` (nu,) and the ``friction`` of each contact (contacts,); (…, k) for k scalars."""

    q: Array
    v: Array
    tau: Array
    control: Array
    friction: Array


class ParameterAdjoint(NamedTuple):
    """Derivatives of a scalar with respect to model parameters; (…, k) for k scalars.

    Attributes:
        inertial: (10 nbody,) inertial parameters of bodies, in the order of :func:`~delassus.inertial_parameters`.
        armature, damping, stiffness: (nv,) joint parameters.
        gain: (nu,) gain of each actuator on a joint; zero for others.
        bias: (nu, 3) its bias: a position servo of gain kp and damping kv has gain kp, bias (0, −kp, −kv).
        friction, restitution: (contacts,) coefficients of each contact.
    """

    inertial: Array
    armature: Array
    damping: Array
    stiffness: Array
    gain: Array
    bias: Array
    friction: Array
    restitution: Array


@dataclass(frozen=True, eq=False)
class StepStart:
    """Initial state and inputs of a step, for derivatives with respect to the parameters of springs, dampers and motors."""

    model: Model
    timestep: float
    q: Array
    v: Array
    control: Array

    def drive_adjoints(self, tau: Array, armature: Array) -> tuple[Array, Array, Array, Array]:
        """Adjoints of damping, stiffness, gains and biases from those of joint forces and of the armature of M̂ = M + dt D + dt² K.

            forces = τ − K (q − q₀ + dt v) − D v + gear · (gain u + bias₀ + bias₁ ℓ + bias₂ ℓ̇),   ℓ = gear (q + dt v), ℓ̇ = gear v

        The velocity-dependent part of a motor's force is in M̂ too: −gear² (dt bias₂ + dt² bias₁).
        """
        m, dt = self.model, self.timestep
        v, at_end = self.v, np.zeros(m.nv)  # coordinates at the end of the step, for joints that have one
        stretch = np.zeros(m.nv)
        for j, joint in enumerate(m.joints):
            if joint.type in ("hinge", "slide"):
                k, i = m.joint_vadr[j], m.joint_qadr[j]
                at_end[k] = self.q[i] + dt * v[k]
                stretch[k] = self.q[i] - m.spring_reference[i]
        column = (slice(None), *(None,) * (tau.ndim - 1))
        damping = -v[column] * tau + dt * armature
        stiffness = -(stretch + dt * v)[column] * tau + dt**2 * armature
        gain, bias = np.zeros((m.nu, *tau.shape[1:])), np.zeros((m.nu, 3, *tau.shape[1:]))
        place = 0
        for a in m.actuators:
            if a.joint is not None:
                k = int(m.joint_vadr[m.joint_index(a.joint)])
                u = np.clip(self.control[place], *a.control_range)
                length, speed = a.gear * at_end[k], a.gear * v[k]
                force = a.gain * u + a.bias[0] + a.bias[1] * length + a.bias[2] * speed
                if a.force_range[0] < force < a.force_range[1]:
                    gain[place] = a.gear * u * tau[k]
                    bias[place] = [a.gear * x * tau[k] for x in (1.0, length, speed)]
                bias[place, 1] -= a.gear**2 * dt**2 * armature[k] * (a.bias[1] < 0)
                bias[place, 2] -= a.gear**2 * dt * armature[k] * (a.bias[2] < 0)
            place += a.controls
        return damping, stiffness, gain, bias


class LinearizedStep:
    """Linearized step of a :class:`~delassus.Simulator`, from :meth:`Simulator.linearize`.

        (q⁺, v⁺) = step(q, v, control, τ)        d(q⁺, v⁺) = A d(q, v) + B dcontrol

    Directions of q are in its tangent space, in the coordinates of v: q ⊕ dq as in :func:`~delassus.integrate`. Derivatives hold while every contact stays open, sticks or slides as it does,
    and no limit becomes active or inactive. :attr:`kinks` marks contacts that are about to change; there the derivative is one-sided.

    :meth:`jvp` and :meth:`vjp` take O(n + m) and use the simulator's memory: they are valid until it steps again or is set to another state. :attr:`A` and :attr:`B` stay valid once read.

    Attributes:
        q, v: (nq,), (nv,) state after the step.
        step: the :class:`~delassus.StepResult`.
        modes: per contact of the step: "open", "sticking" or "sliding".
        kinks: (contacts,) bool: true if the contact is about to change its mode.
        row_kinks: True if a limit or dry friction is about to change its mode.
        correction_kink: True if a penetration is at the threshold of being corrected.
        redundant: True if contact forces are not unique, as under the four legs of a table. Their change is then the minimum-norm one. Where such contacts slide, the
            derivative depends on how they share the load, and a mode may change without a kink.
        left_out: description of what is not differentiated; empty if nothing is left out.
    """

    def __init__(self, world: _core.World, changes: list[int], step: StepResult, start: StepStart, q: Array, v: Array) -> None:
        self._world, self._changes, self._when, self._start = world, changes, changes[0], start
        self._controls = start.model.nu
        self.step, self.q, self.v = step, q, v
        modes, kinks, self.row_kinks, self.correction_kink, self.redundant, gaps = world.linearized_modes()
        self.modes: tuple[ContactMode, ...] = tuple(_MODES[k] for k in modes)
        self.kinks = np.array(kinks, dtype=bool)
        self.left_out: tuple[str, ...] = tuple(_GAPS[name] for name in gaps)
        self._A: Array | None = None
        self._B: Array | None = None

    @property
    def status(self) -> str:
        """Status of the step, see :attr:`StepResult.status`."""
        return str(self.step.status)

    def _fresh(self) -> _core.World:
        if self._changes[0] != self._when:
            raise StaleError(
                "LinearizedStep: its simulator has moved on. Call jvp and vjp before the next step, read A and B before it, or linearize again from a saved state."
            )
        return self._world

    def jvp(
        self,
        dq: ArrayLike | None = None,
        dv: ArrayLike | None = None,
        dcontrol: ArrayLike | None = None,
        dtau: ArrayLike | None = None,
        dfriction: ArrayLike | None = None,
        drestitution: ArrayLike | None = None,
    ) -> StepTangent:
        """Change of q⁺ and v⁺ along directions.

        Args:
            dq, dv, dtau: (nv,) or (nv, k).
            dcontrol: (nu,) or (nu, k).
            dfriction, drestitution: (contacts,) or (contacts, k) for the coefficients of each contact. None: no change.
        """
        world, n, contacts = self._fresh(), self.v.size, self.kinks.size
        sizes = {"dq": (dq, n), "dv": (dv, n), "dcontrol": (dcontrol, self._controls), "dtau": (dtau, n)}
        k, vector = columns_of(sizes | {"dfriction": (dfriction, contacts), "drestitution": (drestitution, contacts)})
        return StepTangent(*world.tangents(dq, dv, dtau, dcontrol, dfriction, drestitution, k, vector))

    def vjp(self, q_bar: ArrayLike | None = None, v_bar: ArrayLike | None = None) -> StepAdjoint:
        """Differentiate q_bar · q⁺ + v_bar · v⁺ with respect to all inputs of the step.

        Args:
            q_bar, v_bar: (nv,) or (nv, k) weights; those of q⁺ in its tangent space. None: zero.
        """
        world, n = self._fresh(), self.v.size
        k, vector = columns_of({"q_bar": (q_bar, n), "v_bar": (v_bar, n)})
        return StepAdjoint(*world.adjoints(q_bar, v_bar, k, vector, False))

    def parameter_vjp(self, q_bar: ArrayLike | None = None, v_bar: ArrayLike | None = None) -> ParameterAdjoint:
        """Differentiate q_bar · q⁺ + v_bar · v⁺ with respect to masses, inertias, armature, damping, stiffness, gains, friction and restitution.

        Not differentiated: the centre of mass, where external forces act, with respect to the inertial parameters; forces computed by MuJoCo, such as those of tendons and fluids.

        Args:
            q_bar, v_bar: see :meth:`vjp`.
        """
        world, n = self._fresh(), self.v.size
        k, vector = columns_of({"q_bar": (q_bar, n), "v_bar": (v_bar, n)})
        _, _, tau, _, friction, inertial, armature, restitution = world.adjoints(q_bar, v_bar, k, vector, True)
        return ParameterAdjoint(inertial, armature, *self._start.drive_adjoints(tau, armature), friction, restitution)

    @property
    def A(self) -> Array:
        """(2 nv, 2 nv) derivative of (q⁺, v⁺) with respect to (q, v), both stacked, in tangent coordinates."""
        if self._A is None:
            n = self.v.size
            one, zero = np.eye(n), np.zeros((n, n))
            self._A = np.vstack(self.jvp(dq=np.hstack([one, zero]), dv=np.hstack([zero, one])))
        return self._A

    @property
    def B(self) -> Array:
        """(2 nv, nu) derivative of (q⁺, v⁺) with respect to the actuator controls."""
        if self._B is None:
            self._B = np.vstack(self.jvp(dcontrol=np.eye(self._controls))) if self._controls else np.zeros((2 * self.v.size, 0))
        return self._B

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        counts = ", ".join(f"{self.modes.count(mode)} {mode}" for mode in dict.fromkeys(self.modes))
        left_out = [("left out", "; ".join(self.left_out))] if self.left_out else []
        return table("LinearizedStep", [("status", self.status), ("contacts", counts or "none"), *left_out])

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.modes.count(mode)} {mode}" for mode in dict.fromkeys(self.modes))
        return f"<LinearizedStep: {self.status}, contacts: {counts or 'none'}{', something left out' if self.left_out else ''}>"
