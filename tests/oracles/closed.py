"""Mechanisms with loops in a state in which the loops hold, seen by the dense oracle."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

import delassus as dl

from . import errors, rows
from .dense import Mechanism
from .trees import JOINTS, mechanism

# eigenvalues of G below this part of the largest, or of one, are rounding
RANK = 1e-12


@dataclass(frozen=True, eq=False)
class Closed:
    """A mechanism in a state, constraints that hold there (their errors, where they have a definition), and a source of numbers."""

    oracle: Mechanism
    made: tuple
    rng: np.random.Generator

    @property
    def model(self):
        return self.oracle.model

    @property
    def q(self):
        return self.oracle.q

    @property
    def constraints(self):
        return [m.constraint for m in self.made]

    def jacobian(self, oracle):
        return np.vstack([np.zeros((0, self.model.nv)), *(sum(m.terms(oracle)) for m in self.made)])

    @cached_property
    def J(self):
        return self.jacobian(self.oracle)

    @cached_property
    def M(self):
        return self.oracle.mass_matrix

    @cached_property
    def half(self):
        """H with HᵀH = M⁻¹."""
        d = np.sqrt(self.M.diagonal())
        return np.linalg.inv(np.linalg.cholesky(self.M / np.outer(d, d))) / d

    @cached_property
    def G(self):
        HJ = self.half @ self.J.T
        return HJ.T @ HJ

    @cached_property
    def factors(self):
        """Singular vectors and values of H Jᵀ that are not rounding."""
        u, s, vt = np.linalg.svd(self.half @ self.J.T, full_matrices=False)
        real = s > np.sqrt(RANK) * max(s.max(initial=0.0), 1.0)
        return u[:, real], s[real], vt[real]

    @cached_property
    def G_inverse(self):
        """G⁺, by singular values."""
        _, s, vt = self.factors
        return (vt.T / s**2) @ vt

    @cached_property
    def projector(self):
        """N = 1 − M⁻¹ Jᵀ G⁺ J, by singular values."""
        u, _, _ = self.factors
        return np.eye(self.model.nv) - self.half.T @ u @ u.T @ np.linalg.inv(self.half.T)

    def at(self, v):
        """The same mechanism with a velocity."""
        return Closed(Mechanism(self.model, self.q, v), self.made, self.rng)


def declared(model, at):
    """The loops of a model's file, all of them connects."""
    made = []
    for loop in model.loops:
        places = {"point": np.array(loop.point), "other_point": np.array(loop.other_point)}
        one = rows.connect(model, loop.body, loop.other, **places)
        made.append(errors.Aimed(one.constraint, one.terms, errors.apart(loop.body, loop.other, **places)))
    return tuple(made)


def of(model, q, seed=0):
    oracle = Mechanism(model, q)
    return Closed(oracle, declared(model, oracle), np.random.default_rng([seed, 3]))


def four_bar_pose(model, crank, crank_length=0.2, coupler=0.5, rocker=0.4, ground=0.5, up=1.0):
    """Configuration of the default four-bar at an angle of its crank from neutral, by circles that meet."""
    tip = crank_length * np.array([-np.sin(-crank), np.cos(-crank)])
    to = np.array([ground, 0.0]) - tip
    d = np.linalg.norm(to)
    a = (coupler**2 - rocker**2 + d**2) / (2 * d)
    h = np.sqrt(coupler**2 - a**2)
    pin = tip + a * to / d + up * h * np.array([-to[1], to[0]]) / d
    neutral = dl.body_placements(model, model.neutral())
    angle = {name: np.arctan2(*neutral[model.body_index(name), [2, 0], 0]) for name in ("crank", "coupler", "rocker")}
    # hinges turn about +y: from z to x
    coupler_turn = np.arctan2(*(pin - tip)[::-1]) - angle["coupler"]
    rocker_turn = np.arctan2(pin[1], pin[0] - ground) - angle["rocker"]
    turned = {"crank": crank, "coupler": -coupler_turn - crank, "rocker": -rocker_turn}
    q = np.zeros(3)
    for name, value in turned.items():
        q[model.joint_qadr[model.joint_names.index(f"{name}_hinge")]] = value
    return q


def rods(model, turn):
    """Configuration of an n-four-bar whose rods are all turned by an angle from upright; a quarter turn is singular."""
    q = np.zeros(model.nq)
    for j, name in enumerate(model.joint_names):
        q[model.joint_qadr[j]] = turn if name.startswith("rod") else -turn
    return q


@lru_cache(maxsize=64)
def named(name, seed=0):
    """Make a mechanism by name: "four_bar", "n_four_bar", "n_four_bar flat", "cassie"."""
    rng = np.random.default_rng([seed, 5])
    if name == "four_bar":
        model = dl.scenes.four_bar()
        return of(model, four_bar_pose(model, rng.uniform(-3, 3)), seed)
    if name.startswith("n_four_bar"):
        model = dl.scenes.n_four_bar(4)
        return of(model, rods(model, np.pi / 2 if "flat" in name else rng.uniform(-1.2, 1.2)), seed)
    model = dl.load("cassie")
    return of(model, model.keyframes["home"], seed)


NAMED = ("four_bar", "n_four_bar", "n_four_bar flat", "cassie")
KINDS = ("connect", "weld", "hinge", "distance")


@lru_cache(maxsize=256)
def random_loop(seed):
    """Make a random tree with one to three loops of connects, welds, hinges or distances that hold in its random state."""
    rng = np.random.default_rng([seed, 9])
    plan = []
    for k in range(int(rng.integers(4, 9))):
        parent = k - 1 if rng.random() < 0.6 else int(rng.integers(-1, k))
        kinds = [joints for joints in JOINTS if parent < 0 or "free" not in joints]
        plan.append((parent, kinds[rng.integers(len(kinds))], False))
    oracle = mechanism(plan, [seed, 1])
    made = []
    for _ in range(int(rng.integers(1, 4))):
        body, other = rng.choice(np.arange(1, oracle.model.nbody), 2, replace=False)
        made.append(errors.aimed(rng, oracle.model, KINDS[rng.integers(len(KINDS))], (int(body), int(other)), oracle))
    return Closed(Mechanism(oracle.model, oracle.q), tuple(made), rng)
