"""Mechanisms in a state with constraints, and all that the dense definitions say about them."""

import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

import delassus as dl

from . import rows
from .dense import Mechanism
from .trees import mechanism

MODELS = {
    **{name: (lambda name=name: dl.load(name)) for name in dl.embedded_names()},
    "chain": lambda: dl.scenes.chain(9),
    "tree": lambda: dl.scenes.binary_tree(3),
    "stem": lambda: dl.scenes.stem_with_branches(3, 2, 4),
    "one link": lambda: dl.scenes.chain(1),
    "one box": lambda: dl.scenes.box_stack(1),
    "boxes": lambda: dl.scenes.box_stack(3),
    "four-bar": dl.scenes.four_bar,
}

# mixed joints, several a body, fixed and massless bodies in between, armatures: (parent, joints, massless)
RANDOM = {
    "mixed": [(-1, ("free",), False), (0, ("ball",), False), (1, ("slide", "hinge"), True), (2, (), False), (2, ("hinge", "hinge", "hinge"), False), (0, ("slide", "ball"), False)],
    "two trees": [(-1, ("ball", "hinge"), False), (-1, ("hinge",), False), (0, ("hinge",), False), (1, ("slide",), False), (1, ("hinge", "hinge"), False)],
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism in a state, some constraints, and a source of numbers."""

    oracle: Mechanism
    made: tuple
    rng: np.random.Generator

    @property
    def model(self):
        return self.oracle.model

    @property
    def constraints(self):
        return [m.constraint for m in self.made]

    @cached_property
    def J(self):
        return np.vstack([np.zeros((0, self.model.nv)), *(sum(m.terms(self.oracle)) for m in self.made)])

    @cached_property
    def m(self):
        return self.J.shape[0]

    @cached_property
    def G(self):
        return self.J @ np.linalg.solve(self.oracle.mass_matrix, self.J.T)

    def numbers(self, *shape):
        return self.rng.standard_normal(shape)


@lru_cache(maxsize=64)
def state(name, seed=0):
    """Dense view of a named mechanism in a random state."""
    if name in RANDOM:
        return mechanism(RANDOM[name], [seed])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]()
    rng = np.random.default_rng([seed, 7])
    return Mechanism(model, model.random(rng), rng.standard_normal(model.nv))


def case(name, kinds="contacts", seed=0):
    """Make a case: "none", "contacts" (3-D and 6-D on single links, some links twice), "redundant" (each twice, the world too), "loops" (everything)."""
    oracle, rng = state(name, seed), np.random.default_rng([seed, 11])
    model = oracle.model
    last, middle = model.nbody - 1, max(1, model.nbody // 2)
    made = []
    if kinds != "none":
        made = [
            rows.point_contact(model, last, normal=rng.standard_normal(3), **rows.points(rng)),
            rows.weld(model, middle, **rows.points(rng)),
            rows.connect(model, last, **rows.points(rng)),
            rows.hinge(model, max(1, model.nbody // 3), axis=rng.standard_normal(3), **rows.points(rng)),
        ]
    if kinds == "redundant":
        made = [*made, rows.weld(model, 0, **rows.points(rng)), *made[:3]]
    if kinds == "loops":
        made += [rows.random_constraint(rng, model, kind, (last, 1)) for kind in rows.possible(model)]
    return Case(oracle, tuple(made), rng)
