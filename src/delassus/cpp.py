"""The C++ package included in this one: its location, and model files for it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import LoadError

if TYPE_CHECKING:
    from .constraints import Constraint
    from .model import Loop, Model

__all__ = ["get_cmake_dir", "get_include", "save_model"]

_SETS = ("free", "cone", "half-line", "box")  # in the order of cpp/data.h


def _folder(*parts: str) -> str:
    folder = Path(__file__).parent.joinpath(*parts)
    if not folder.is_dir():
        raise LoadError(f"{folder}: this build of delassus has no C++ package. Install it without -DDELASSUS_CPP=OFF.")
    return str(folder)


def get_include() -> str:
    """Return the folder of the C++ headers, with ``delassus/delassus.hpp``, for the compiler option ``-I``.

    Raises:
        LoadError: this build has no C++ package.

    Examples:
        >>> import delassus as dl
        >>> from pathlib import Path
        >>> Path(dl.get_include(), "delassus", "delassus.hpp").exists()
        True
    """
    return _folder("include")


def get_cmake_dir() -> str:
    """Return the folder of ``delassusConfig.cmake``, for CMake's ``-Ddelassus_DIR=``; ``find_package(delassus)`` then defines ``delassus::delassus``.

    The shared library is two folders above it.

    Raises:
        LoadError: this build has no C++ package.

    Examples:
        >>> import delassus as dl
        >>> from pathlib import Path
        >>> Path(dl.get_cmake_dir(), "delassusConfig.cmake").exists()
        True
    """
    return _folder("lib", "cmake", "delassus")


def save_model(path: str | os.PathLike[str], model: Model, constraints: Sequence[Constraint | Loop] | None = None) -> None:
    """Write a model with its constraints and keyframes as text that ``delassus::Model::load`` of the C++ package reads.

    Numbers keep all their digits: from the same model, C++ computes the same bits. Shapes, actuators and sensors are not written.

    Args:
        path: path of the file, which is replaced.
        model: the mechanism.
        constraints: constraints that ``saved_constraints()`` returns in C++. None: the model's active loops.

    Raises:
        WriteError: the folder is missing, the disk is full, …

    Examples:
        >>> import delassus as dl, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "cassie.delassus")
        ...     dl.save_model(path, dl.load("cassie"))
        ...     path.read_text().split()[:2]
        ['delassus-model', '1']
    """
    from .model.model import as_model
    from .simulator.files import named_path, whole_file

    content = _text(as_model(model), model.loops if constraints is None else constraints)
    with whole_file(named_path(path), "save_model") as file:
        file.write(content.encode())


def _text(model: Model, constraints: Sequence[Constraint | Loop]) -> str:
    """Content of the file, in the format that cpp/model_file.cpp reads."""
    from .solvers import ConstrainedDynamics

    lines = ["delassus-model 1", _row(_quoted(model.name), model.gravity)]
    lines.append(f"bodies {len(model.bodies)}")
    for b, body in enumerate(model.bodies, 1):
        lines.append(_row(
            _quoted(body.name), _quoted(body.parent), model.body_position[b], model.body_quaternion[b], [body.mass], body.com, body.inertia,
        ))  # fmt: skip
    lines.append(f"joints {len(model.joints)}")
    for joint, axis, at in zip(model.joints, model.joint_axis, model.joint_qadr, strict=True):
        # springs of balls are computed by MuJoCo
        spring = (joint.stiffness, model.spring_reference[at]) if joint.type in ("hinge", "slide") else (0.0, 0.0)
        numbers = (axis, joint.position, [joint.reference], joint.range, [joint.armature, joint.friction_loss, joint.damping, *spring])
        lines.append(_row(_quoted(joint.name), joint.type, _quoted(joint.body), *numbers))
    lines.append(f"keyframes {len(model.keyframes)}")
    for name, q in model.keyframes.items():
        lines.append(_row(_quoted(name), q, model.keyframe_velocities.get(name, model.zero_velocity())))
    dynamics = ConstrainedDynamics(model, constraints)
    lines.append(f"constraints {len(dynamics.constraints)}")
    for constraint, part in zip(dynamics.constraints, dynamics._parts, strict=True):
        lines.append(_constraint(constraint, dynamics._damping[part]))
    return "\n".join([*lines, "end", ""])


def _constraint(constraint: Constraint, damping: Iterable[float]) -> str:
    kind, rows, data = constraint._recipe
    friction = float(getattr(constraint, "friction", 0.0))
    open_end = constraint.force_set == "half-line" and not constraint._aimed
    head = f"{kind} {rows} {_SETS.index(constraint.force_set)} {friction!r} {int(open_end)} {data['axes_on']} {data['measured']}"
    lists = [data[name] for name in ("bodies", "points", "matrix", "joints", "numbers", "target")]
    return _row(head, [data["kp"], data["kd"]], str(data["point_rows"]), *(_listed(values) for values in (*lists, list(damping))))


def _listed(values: Sequence[float]) -> str:
    """Numbers, preceded by their count."""
    return _row(str(len(values)), *([str(v)] if isinstance(v, int) else [v] for v in values))


def _row(*parts: str | Iterable[float | str]) -> str:
    """Words, and all numbers with all their digits."""
    return " ".join(
        part if isinstance(part, str) else " ".join(x if isinstance(x, str) else repr(float(x)) for x in part) for part in parts
    )


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
