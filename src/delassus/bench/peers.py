"""Pinocchio and MuJoCo on the same problem, where they can represent it. Their results are checked against the same definition."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from ..dynamics import Workspace, forward_dynamics, mass_matrix
from ..errors import ArgumentError, MissingExtraError
from .definition import Definition, relative
from .methods import CONTACT_ALLOWED, Methods, Problem
from .motion import Progress
from .pinocchio import PinocchioModel
from .trial import Section, Trial, measured

__all__ = ["Peers"]

Array = NDArray[Any]
_ACCELERATION_ALLOWED = 1e-6  # proximal iterations of others have their own stopping rules
_SOFTENS = "not comparable: it softens every constraint, and these are rigid"
_DISABLED = mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS | mujoco.mjtDisableBit.mjDSBL_LIMIT


class Peers:
    """Methods of other libraries for a problem, at rest.

    Args:
        problem: the model, its state and its constraints.
        compiled: MuJoCo's model of the same mechanism.
        simulated: True if the contacts come from a simulation, so that MuJoCo has similar ones.
    """

    def __init__(self, problem: Problem, compiled: Any, *, simulated: bool) -> None:
        self._problem, self._compiled, self._simulated = problem, copy.copy(compiled), simulated

    @cached_property
    def _pin(self) -> Any:
        if find_spec("pinocchio") is None:
            raise MissingExtraError('not installed: pip install "delassus[peers]"')
        import pinocchio

        return pinocchio

    @cached_property
    def _peer(self) -> PinocchioModel:
        return PinocchioModel(self._pin, self._problem.model, self._problem.q)

    @cached_property
    def _rest(self) -> Definition:
        """The definition at rest: Pinocchio's rows rotate with bodies, ours are in world axes."""
        p = self._problem
        return Definition(p.model, p.q, np.zeros(p.model.nv), p.constraints)

    @cached_property
    def _tau(self) -> Array:
        """Joint forces: without them everything would fall with the same acceleration."""
        return np.random.default_rng(1).standard_normal(self._problem.model.nv)

    def versions(self) -> dict[str, str]:
        """Versions of the installed libraries."""
        found = {"MuJoCo": mujoco.__version__}
        return found | ({"Pinocchio": self._pin.__version__} if find_spec("pinocchio") else {})

    def methods(self, section: str) -> Methods:
        """Methods for a section."""
        made: dict[str, list[tuple[str, Callable[[], Trial]]]] = {
            "matrix": [
                ("Pinocchio", self._pin_matrix),
                ("Pinocchio Cholesky", partial(self._pin_cholesky, False)),
                ("MuJoCo", self._mujoco_matrix),
            ],
            "inverse": [("Pinocchio Cholesky", partial(self._pin_cholesky, True)), ("MuJoCo", _softens)],
            "dynamics": [
                ("Pinocchio", partial(self._pin_dynamics, "constraintDynamics")),
                ("Pinocchio lcaba", partial(self._pin_dynamics, "lcaba")),
                ("MuJoCo", _softens),
            ],
            "contacts": [("Pinocchio admm", self._pin_contacts), ("MuJoCo", _softens)],
        }
        return [(name, "peer", make) for name, make in made.get(section, ())]

    def tree(self, budget: float, progress: Progress) -> Section:
        """Mass matrix and free acceleration at rest, without constraints, ours and theirs."""
        p, work = self._problem, Workspace(self._problem.model)
        M, a, still = np.empty((p.model.nv, p.model.nv)), np.empty(p.model.nv), np.zeros(p.model.nv)
        D, tau = self._rest, self._tau
        methods: Methods = [
            ("mass_matrix", "explicit", lambda: Trial(lambda: mass_matrix(work, p.q, out=M), lambda X: relative(X, D.M), D.matrix_allowed)),
            ("Pinocchio crba", "peer", self._pin_mass),
            ("MuJoCo makeM", "peer", self._mujoco_mass),
            (
                "forward_dynamics",
                "explicit",
                lambda: Trial(lambda: forward_dynamics(work, p.q, still, tau, out=a), lambda x: D.free_error(x, tau), D.matrix_allowed),
            ),
            ("Pinocchio aba", "peer", self._pin_aba),
        ]
        return Section("tree", "M, and ν̇ of M ν̇ + h = τ at rest, without constraints", measured(methods, budget, progress))

    # ---- Pinocchio ------------------------------------------------------------------------------------------------------------

    def _pin_mass(self) -> Trial:
        pin, P, D = self._pin, self._peer, self._rest

        def judge(upper: Array) -> float:
            M = np.triu(upper) + np.triu(upper, 1).T
            return relative(P.T @ M @ P.T.T, D.M)

        return Trial(lambda: pin.crba(P.model, P.data, P.q), judge, D.matrix_allowed)

    def _pin_aba(self) -> Trial:
        pin, P, D = self._pin, self._peer, self._rest
        still, tau = np.zeros(P.model.nv), P.T.T @ self._tau
        return Trial(lambda: pin.aba(P.model, P.data, P.q, still, tau), lambda a: D.free_error(P.T @ a, self._tau), D.matrix_allowed)

    def _pin_matrix(self) -> Trial:
        pin, P, D = self._pin, self._peer, self._rest
        models, datas = P.constraints(self._problem.constraints, self._problem.q)
        if any(c.joint1_id and c.joint2_id for c in models):
            raise ArgumentError("not comparable: its computeDelassusMatrix is for rows on one body and the world")
        data = P.model.createData()
        return Trial(
            lambda: pin.computeDelassusMatrix(P.model, data, P.q, models, datas), lambda A: relative(A, D.G), D.matrix_allowed,
            note=lambda _: "computeDelassusMatrix",
        )  # fmt: skip

    def _pin_cholesky(self, inverse: bool) -> Trial:
        pin, P, D = self._pin, self._peer, self._rest
        models, datas = P.constraints(self._problem.constraints, self._problem.q)
        data, pairs = P.model.createData(), list(zip(models, datas, strict=True))
        factor = pin.ContactCholeskyDecomposition(P.model, data, models, datas)
        damped = D.G + D.damping * np.eye(len(D.G))

        def run() -> Array:
            pin.crba(P.model, data, P.q, pin.Convention.WORLD)
            for c, numbers in pairs:
                c.calc(P.model, data, numbers)
            factor.compute(P.model, data, models, datas, D.damping)
            return factor.getOperationalSpaceInertiaMatrix() if inverse else factor.getInverseOperationalSpaceInertiaMatrix()  # type: ignore[no-any-return]

        want, allowed = (D.inverse, D.inverse_allowed) if inverse else (damped, D.matrix_allowed)
        return Trial(run, lambda A: relative(A, want), allowed, note=lambda _: "" if inverse else "of G + ε")

    def _pin_dynamics(self, name: str) -> Trial:
        pin, P, D = self._pin, self._peer, self._rest
        if len(D.G) == 0:
            raise ArgumentError("not comparable: without rows it is its aba")
        models, datas = P.constraints(self._problem.constraints, self._problem.q)
        data, still, settings = P.model.createData(), np.zeros(P.model.nv), pin.ProximalSettings(1e-10, 1e-6, 20)
        if name == "lcaba":
            pin.computeJointMinimalOrdering(P.model, data, models)
        else:
            pin.initConstraintDynamics(P.model, data, models, datas)
        solve = getattr(pin, name)
        return Trial(
            lambda: solve(P.model, data, P.q, still, still, models, datas, settings), lambda a: D.acceleration_error(P.T @ a), _ACCELERATION_ALLOWED,
            note=lambda _: "at rest", iterations=lambda _: int(settings.iter),
        )  # fmt: skip

    def _pin_contacts(self) -> Trial:
        pin, P, p = self._pin, self._peer, self._problem
        models, datas, order = P.contact_sets(p.constraints)
        matrix, g, settings = (
            np.ascontiguousarray(p.definition.G[np.ix_(order, order)]),
            p.contact_velocities()[order],
            pin.ADMMSolverSettings(),
        )
        settings.absolute_complementarity_tol = settings.absolute_feasibility_tol = 1e-6
        settings.relative_complementarity_tol = settings.relative_feasibility_tol = 0.0
        settings.max_iterations = 1000
        solver, forces = pin.ADMMConstraintSolver(p.rows), np.empty(p.rows)

        def run() -> Any:
            result = pin.ADMMSolverResult()
            solver.solve(pin.DelassusOperatorDense(matrix), g, models, datas, settings, result)
            forces[order] = result.retrieveConstraintImpulses()
            return result

        return Trial(
            run, lambda _: p.contact_error(forces), CONTACT_ALLOWED, unsolved=lambda r: "" if r.converged else f"not there after {r.iterations} iterations",
            note=lambda _: "of a given dense G", iterations=lambda r: int(r.iterations),
        )  # fmt: skip

    # ---- MuJoCo ---------------------------------------------------------------------------------------------------------------

    @cached_property
    def _mujoco(self) -> tuple[Any, Any]:
        """Its model with circular cones and only loops and contacts, and data in the pose, with collisions detected."""
        m = self._compiled
        m.opt.solver, m.opt.cone, m.opt.jacobian = (
            mujoco.mjtSolver.mjSOL_PGS,
            mujoco.mjtCone.mjCONE_ELLIPTIC,
            mujoco.mjtJacobian.mjJAC_DENSE,
        )
        m.opt.disableflags |= _DISABLED
        d = mujoco.MjData(m)
        d.qpos[:] = self._problem.q
        mujoco.mj_fwdPosition(m, d)
        return m, d

    def _mujoco_mass(self) -> Trial:
        (m, d), D = self._mujoco, self._rest
        M = np.zeros((m.nv, m.nv))

        def run() -> None:
            mujoco.mj_kinematics(m, d)
            mujoco.mj_comPos(m, d)
            mujoco.mj_makeM(m, d)

        def judge(_: None) -> float:
            mujoco.mj_fullM(m, d, M)
            return relative(M, D.M)

        return Trial(run, judge, D.matrix_allowed, note=lambda _: "sparse")

    def _mujoco_matrix(self) -> Trial:
        if not self._simulated:
            raise ArgumentError("not comparable: its rows come from its own collisions and file")
        (m, d), D = self._mujoco, self._rest
        if d.nefc == 0:
            raise ArgumentError("not comparable: it finds nothing that touches in this pose")

        def run() -> None:
            mujoco.mj_kinematics(m, d)
            mujoco.mj_comPos(m, d)
            mujoco.mj_makeM(m, d)
            mujoco.mj_factorM(m, d)
            mujoco.mj_makeConstraint(m, d)
            mujoco.mj_projectConstraint(m, d)

        def judge(_: None) -> float:
            rows = int(d.nefc)
            J, A = d.efc_J.reshape(rows, m.nv), d.efc_AR.reshape(rows, rows) - np.diag(d.efc_R)
            return relative(A, J @ np.linalg.solve(D.M, J.T))

        return Trial(run, judge, D.matrix_allowed, note=lambda _: f"its own {d.nefc} rows, plus R")


def _softens() -> Trial:
    raise ArgumentError(_SOFTENS)
