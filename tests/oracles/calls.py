"""Every function of the dynamics and state rooms in one table, so that what holds for all is tested on all."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import delassus as dl


@dataclass(frozen=True)
class Call:
    """A function, the names of its arguments, and the shape of its ``out`` where it has one."""

    function: Callable
    arguments: tuple[str, ...]
    keywords: tuple[str, ...] = ()
    out_shape: Callable | None = None

    def __call__(self, where, given, **options):
        """Call with values by name, ``given`` holding all of them; ``options`` come on top."""
        keywords = {k: given[k] for k in self.keywords} | options
        return self.function(where, *(given[k] for k in self.arguments), **keywords)

    @property
    def arrays(self):
        """Names of the arguments that are arrays."""
        return tuple(k for k in (*self.arguments, *self.keywords) if k not in ("body", "dt"))


def vector(model):
    return (model.nv,)


def square(model):
    return (model.nv, model.nv)


CALLS = {
    "inverse_dynamics": Call(dl.inverse_dynamics, ("q", "v", "acceleration"), ("external_forces",), vector),
    "bias_forces": Call(dl.bias_forces, ("q", "v"), ("external_forces",), vector),
    "forward_dynamics": Call(dl.forward_dynamics, ("q", "v", "tau"), ("external_forces",), vector),
    "mass_matrix": Call(dl.mass_matrix, ("q",), (), square),
    "mass_matrix_inverse": Call(dl.mass_matrix_inverse, ("q",), (), square),
    "solve_mass_matrix": Call(dl.solve_mass_matrix, ("q", "y"), (), lambda m: (m.nv, 3)),
    "integrate": Call(dl.integrate, ("q", "v", "dt"), (), lambda m: (m.nq,)),
    "difference": Call(dl.difference, ("q_from", "q_to"), (), vector),
    "body_placements": Call(dl.body_placements, ("q",), (), lambda m: (m.nbody, 4, 4)),
    "frame_jacobian": Call(dl.frame_jacobian, ("q", "body", "point"), (), lambda m: (6, m.nv)),
    "frame_velocity": Call(dl.frame_velocity, ("q", "v", "body", "point"), (), lambda m: (6,)),
    "frame_bias_acceleration": Call(dl.frame_bias_acceleration, ("q", "v", "body", "point"), (), lambda m: (6,)),
    "center_of_mass": Call(dl.center_of_mass, ("q",), (), lambda m: (3,)),
    "normalize": Call(dl.normalize, ("q",)),
    "body_placement": Call(dl.body_placement, ("q", "body")),
    "point_position": Call(dl.point_position, ("q", "body", "point")),
    "point_jacobian": Call(dl.point_jacobian, ("q", "body", "point")),
    "point_velocity": Call(dl.point_velocity, ("q", "v", "body", "point")),
    "point_bias_acceleration": Call(dl.point_bias_acceleration, ("q", "v", "body", "point")),
    "kinetic_energy": Call(dl.kinetic_energy, ("q", "v")),
    "potential_energy": Call(dl.potential_energy, ("q",)),
}

WITH_OUT = [name for name, call in CALLS.items() if call.out_shape]


def values(model, seed=0, dtype=np.float64):
    """Return good values of every argument."""
    rng = np.random.default_rng(seed)
    nv = model.nv
    arrays = {
        "q": model.random(rng), "q_from": model.random(rng), "q_to": model.random(rng), "v": rng.standard_normal(nv),
        "acceleration": rng.standard_normal(nv), "tau": rng.standard_normal(nv), "y": rng.standard_normal((nv, 3)),
        "external_forces": rng.standard_normal((model.nbody, 6)), "point": rng.uniform(-0.5, 0.5, 3),
    }  # fmt: skip
    return {k: a.astype(dtype) for k, a in arrays.items()} | {"body": model.nbody - 1, "dt": 0.25}
