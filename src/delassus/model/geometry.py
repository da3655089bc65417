"""Collision geometry that no Shape can hold: meshes, height fields, signed distances, explicit pairs, priorities, collision flags."""

from __future__ import annotations

import hashlib
from typing import Any

import mujoco
import numpy as np

from .records import SHAPE_SIZES

__all__ = ["counted", "digest", "flags", "geom_kind", "set_flags", "touching", "unshaped"]

# flags that affect which contacts MuJoCo finds
COLLISION_FLAGS = ("contact", "filterparent", "nativeccd", "multiccd", "override")


def counted(n: int, what: str, plural: str | None = None) -> str:
    """Return a count with its noun in singular or plural."""
    return f"{n} {what if n == 1 else plural or what + 's'}"


def geom_kind(m: mujoco.MjModel, geom: int) -> str:
    """Type of a geom: "box", "mesh", …."""
    return str(mujoco.mjtGeom(int(m.geom_type[geom])).name[7:].lower())


def touching(m: mujoco.MjModel) -> list[int]:
    """Geoms that may touch something: by their bits, or in an explicit pair."""
    paired = {int(g) for g in (*m.pair_geom1, *m.pair_geom2)}
    return [g for g in range(m.ngeom) if m.geom_contype[g] or m.geom_conaffinity[g] or g in paired]


def flags() -> dict[str, tuple[str, int]]:
    """Return every flag of the option element: the field of its bit, "disableflags" or "enableflags", and the bit."""
    where: dict[str, tuple[str, int]] = {}
    for kind, prefix, field in ((mujoco.mjtDisableBit, "mjDSBL_", "disableflags"), (mujoco.mjtEnableBit, "mjENBL_", "enableflags")):
        where |= {name[len(prefix) :].lower(): (field, int(bit)) for name, bit in kind.__members__.items() if name.startswith(prefix)}
    return where


def set_flags(m: mujoco.MjModel) -> dict[str, str]:
    """Return the flags that differ from their defaults, name → "enable" or "disable"."""
    return {
        name: "disable" if field == "disableflags" else "enable" for name, (field, bit) in flags().items() if getattr(m.opt, field) & bit
    }


def _mesh(m: mujoco.MjModel, mesh: int) -> list[Any]:
    vertices, faces = (
        slice(adr, adr + n) for adr, n in ((m.mesh_vertadr[mesh], m.mesh_vertnum[mesh]), (m.mesh_faceadr[mesh], m.mesh_facenum[mesh]))
    )
    return [m.mesh_vert[vertices], m.mesh_face[faces], hull(m, mesh)]


def hull(m: mujoco.MjModel, mesh: int) -> Any:
    """(n, 3) corners of the convex hull of a mesh, which makes its contacts, in its own frame."""
    start, n = int(m.mesh_vertadr[mesh]), int(m.mesh_vertnum[mesh])
    vertices = np.asarray(m.mesh_vert)[start : start + n]
    graph = int(m.mesh_graphadr[mesh])
    if graph < 0:
        return vertices
    # MuJoCo's graph: number of corners, of faces, an address for each corner, then their numbers
    corners = int(m.mesh_graph[graph])
    return vertices[np.asarray(m.mesh_graph)[graph + 2 + corners : graph + 2 + 2 * corners]]


def field_data(m: mujoco.MjModel, field: int) -> Any:
    """(nrow, ncol) heights of a height field, as fractions of its size."""
    rows, columns, start = int(m.hfield_nrow[field]), int(m.hfield_ncol[field]), int(m.hfield_adr[field])
    return np.asarray(m.hfield_data)[start : start + rows * columns].reshape(rows, columns)


def _surface(m: mujoco.MjModel, geom: int) -> list[Any]:
    kind, data = geom_kind(m, geom), int(m.geom_dataid[geom])
    if kind == "hfield":
        return [m.hfield_size[data], field_data(m, data)]
    plugin = [np.array([m.geom_plugin[geom]]), m.plugin_attr] if m.geom_plugin[geom] >= 0 else []
    return [*(_mesh(m, data) if data >= 0 else []), *plugin]


def unshaped(m: mujoco.MjModel) -> dict[str, list[Any]]:
    """Return everything that affects contacts and that no Shape can represent: one line for each kind, and its content."""
    found: dict[str, list[Any]] = {}
    geoms = touching(m)
    odd = [g for g in geoms if geom_kind(m, g) not in SHAPE_SIZES]
    if odd:
        line = f"{counted(len(odd), 'collision shape')} that {'is' if len(odd) == 1 else 'are'} mesh, height field or signed distance"
        columns = [m.geom_type, m.geom_bodyid, m.geom_pos, m.geom_quat, m.geom_friction, m.geom_contype, m.geom_conaffinity, m.geom_condim]
        found[line] = [column[odd] for column in columns] + [part for g in odd for part in _surface(m, g)]
    if m.npair:
        found[counted(m.npair, "explicit contact pair")] = [m.pair_geom1, m.pair_geom2, m.pair_dim, m.pair_friction]
    ranked = [g for g in geoms if m.geom_priority[g]]
    if ranked:
        found[f"contact priority of {counted(len(ranked), 'shape')}"] = [np.array(ranked), m.geom_priority[ranked]]
    changed = {name: way for name, way in set_flags(m).items() if name in COLLISION_FLAGS}
    if changed:
        content = repr(sorted(changed.items())).encode()
        found[f"collision flags ({', '.join(f'{name} {way}d' for name, way in sorted(changed.items()))})"] = [
            np.frombuffer(content, dtype=np.uint8), *([m.opt.o_friction] if "override" in changed else []),
        ]  # fmt: skip
    return found


def digest(found: dict[str, list[Any]]) -> str:
    """Return a digest of lines and their content; empty if there are none."""
    if not found:
        return ""
    hashed = hashlib.sha256()
    for line, content in found.items():
        hashed.update(line.encode())
        for part in content:
            array = np.ascontiguousarray(part)
            hashed.update(repr(array.shape).encode() + array.tobytes())
    return hashed.hexdigest()
