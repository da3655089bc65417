"""Pictures of a mechanism without a graphics card: rays meet primitive shapes, triangles of meshes are filled, one light casts shadows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._door import numbers
from ..model import Model
from ..simulator import Contacts
from ..spatial import rotation_matrix
from ..state import body_placements
from .looks import SLIDES, STICKS, Look, check_look, robot_colors
from .solids import Mesh, Solid, along, lathe, of_model
from .stage import LONGEST, crowd, outline

__all__ = ["Camera", "Studio", "camera_for", "picture"]

Array = NDArray[Any]
_LIGHT = np.array([0.35, -0.45, 0.82]) / np.linalg.norm([0.35, -0.45, 0.82])
_NEVER = np.inf
_SHADE_CELLS = 700  # cells of the shadow map, in each direction
_EDGE = 1e-3  # margin by which a row of a triangle is searched beyond its ends [pixels]
_SIDES = 8
# profile of an arrow from its tail to its tip: radius over the shaft's; position as a fraction of its length, minus a fraction of its head
_ARROW = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 1.0), (2.4, 1.0, 1.0), (0.0, 1.0, 0.0))
_ARROW_FACES = lathe(np.ones(len(_ARROW)), np.arange(len(_ARROW)), _SIDES).faces.astype(int)


@dataclass(frozen=True)
class Camera:
    """Camera that looks at ``target`` [m] from ``distance`` [m], rotated by angles [rad], ``width`` × ``height`` pixels."""

    target: tuple[float, float, float]
    distance: float
    azimuth: float = -0.95
    elevation: float = 0.32
    opening: float = 0.62
    width: int = 520
    height: int = 400

    @property
    def axes(self) -> Array:
        """(3, 3) right, up and back, world axes, in rows."""
        ca, sa, ce, se = np.cos(self.azimuth), np.sin(self.azimuth), np.cos(self.elevation), np.sin(self.elevation)
        return np.array([[-sa, ca, 0.0], [-se * ca, -se * sa, ce], [ce * ca, ce * sa, se]])

    @property
    def eye(self) -> Array:
        """(3,) [m]."""
        return np.asarray(np.asarray(self.target) + self.distance * self.axes[2])

    @property
    def scale(self) -> float:
        """Pixels per metre at a distance of 1 m."""
        return self.height / 2 / float(np.tan(self.opening / 2))

    def pixels(self, points: ArrayLike) -> Array:
        """(K, 2) positions of points (K, 3) in the picture, columns and rows."""
        x = (np.asarray(points, dtype=float).reshape(-1, 3) - self.eye) @ self.axes.T
        scale = self.scale / np.maximum(-x[:, 2], 1e-9)
        return np.stack([self.width / 2 + scale * x[:, 0], self.height / 2 - scale * x[:, 1]], axis=-1)


def camera_for(points: ArrayLike, **options: Any) -> Camera:
    """Return the closest camera that shows all points (K, 3), centred and with a margin; options are those of :class:`Camera`."""
    camera = Camera((0.0, 0.0, 0.0), 1.0, **options)
    seen = np.asarray(points, dtype=float).reshape(-1, 3) @ camera.axes.T
    half = np.tan(camera.opening / 2) * np.array([camera.width / camera.height, 1.0]) / 1.12
    # a point with coordinates x across and z towards the camera is in the picture if |x − c| ≤ half (distance − z): the extremes of both sides give the middle c and the distance
    middle, distance = np.zeros(2), 0.05
    for k in range(2):
        low, high = np.max(-seen[:, k] + half[k] * seen[:, 2]), np.max(seen[:, k] + half[k] * seen[:, 2])
        middle[k], needed = (high - low) / 2, (high + low) / 2 / half[k]
        distance = max(distance, needed)
    depth = float(np.median(seen[:, 2]))
    target = np.array([*middle, depth]) @ camera.axes
    return replace(camera, target=tuple(target.tolist()), distance=max(distance - depth, 0.1))


# ---- rays on shapes, each in its own frame: o + t d, o and d (..., 3) ------------------------------------------------------------


def _dot(a: Array, b: Array, n: int = 3) -> Array:
    return np.asarray(sum(a[..., k] * b[..., k] for k in range(n)))


def _sphere(o: Array, d: Array, r: float) -> Array:
    b, c, a = _dot(o, d), _dot(o, o) - r * r, _dot(d, d)
    square = b * b - a * c
    return np.where(square >= 0, (-b - np.sqrt(np.maximum(square, 0))) / a, np.asarray(_NEVER, dtype=square.dtype))


def _slabs(o: Array, d: Array, half: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        one, two = (-half - o) / d, (half - o) / d
    low, high = np.fmin(one, two), np.fmax(one, two)
    near = np.maximum(np.maximum(low[..., 0], low[..., 1]), low[..., 2])
    far = np.minimum(np.minimum(high[..., 0], high[..., 1]), high[..., 2])
    return np.where(near <= far, near, _NEVER)


def _tube(o: Array, d: Array, r: float, half: float) -> Array:
    a, b, c = _dot(d, d, 2), _dot(o, d, 2), _dot(o, o, 2) - r * r
    square = b * b - a * c
    t = (-b - np.sqrt(np.maximum(square, 0))) / np.maximum(a, 1e-12)
    return np.where((square >= 0) & (np.abs(o[..., 2] + t * d[..., 2]) <= half), t, _NEVER)


def _meet(kind: str, lengths: Sequence[float], o: Array, d: Array) -> Array:
    """Return t where rays first hit a shape, infinite where they miss it."""
    size = np.array(lengths)
    if kind == "sphere":
        return _sphere(o, d, size[0])
    if kind == "ellipsoid":
        return _sphere(o / size, d / size, 1.0)
    if kind == "box":
        return _slabs(o, d, size)
    side = _tube(o, d, size[0], size[1])
    if kind == "capsule":
        ends = [_sphere(o - end, d, size[0]) for end in ((0.0, 0.0, size[1]), (0.0, 0.0, -size[1]))]
        return np.minimum(side, np.minimum(*ends))
    for end in (size[1], -size[1]):  # the end caps of a cylinder
        t = (end - o[..., 2]) / np.where(np.abs(d[..., 2]) < 1e-12, 1e-12, d[..., 2])
        x = o + t[..., None] * d
        side = np.minimum(side, np.where(_dot(x, x, 2) <= size[0] ** 2, t, _NEVER))
    return side


def _outward(kind: str, lengths: Sequence[float], x: Array) -> Array:
    """Return normals at points of a shape's surface, not of unit length."""
    size = np.array(lengths)
    if kind == "ellipsoid":
        return np.asarray(x / size**2)
    if kind == "box":
        share = x / size
        return np.where(np.abs(share) >= np.abs(share).max(-1, keepdims=True) - 1e-9, np.sign(share), 0.0)
    if kind == "sphere":
        return x
    inside = np.clip(x[..., 2], -size[1], size[1])
    if kind == "capsule":
        return np.asarray(x - np.stack([0 * inside, 0 * inside, inside], axis=-1))
    lid = np.abs(x[..., 2]) > size[1] - 1e-9
    return np.where(lid[..., None], np.stack([0 * inside, 0 * inside, inside], axis=-1), x * [1.0, 1.0, 0.0])


# ---- triangles on a grid of pixels -----------------------------------------------------------------------------------------------


def _fill(corners: Array, depths: Array, shape: tuple[int, int]) -> tuple[Array, Array, Array, Array]:
    """Find the pixels that triangles cover.

    Args:
        corners: (F, 3, 2) columns and rows of the corners.
        depths: (F, 3) values to interpolate linearly in the picture.
        shape: height and width of the picture.

    Returns:
        rows (P,), columns (P,), triangle (P,), depth (P,) of all covered pixels of all triangles.
    """
    h, w = shape
    low = np.ceil(corners.min(axis=1) - 0.5).astype(int)
    high = np.floor(corners.max(axis=1) - 0.5).astype(int)
    low, high = np.maximum(low, 0), np.minimum(high, [w - 1, h - 1])
    area = (corners[:, 1, 0] - corners[:, 0, 0]) * (corners[:, 2, 1] - corners[:, 0, 1]) - (corners[:, 2, 0] - corners[:, 0, 0]) * (
        corners[:, 1, 1] - corners[:, 0, 1]
    )
    used = np.flatnonzero((high >= low).all(axis=1) & (np.abs(area) > 1e-12))
    # each row of pixels that a triangle crosses, and from where to where it does: the boxes of slivers hold far more pixels
    of, place = _expanded(high[used, 1] - low[used, 1] + 1)
    owner = used[of]
    rows = low[owner, 1] + place
    first, last = _crossed(corners[owner], rows + 0.5)
    start = np.ceil(np.clip(first - 0.5 - _EDGE, 0, w)).astype(int)
    of, place = _expanded(np.maximum(np.floor(np.clip(last - 0.5 + _EDGE, -1, w - 1)).astype(int) - start + 1, 0))
    triangle, row, column = owner[of], rows[of], start[of] + place
    x, y = column + 0.5, row + 0.5
    c, z = corners[triangle], depths[triangle]
    # barycentric coordinates
    v = ((x - c[:, 0, 0]) * (c[:, 2, 1] - c[:, 0, 1]) - (c[:, 2, 0] - c[:, 0, 0]) * (y - c[:, 0, 1])) / area[triangle]
    u = ((c[:, 1, 0] - c[:, 0, 0]) * (y - c[:, 0, 1]) - (x - c[:, 0, 0]) * (c[:, 1, 1] - c[:, 0, 1])) / area[triangle]
    inside = (u >= 0) & (v >= 0) & (u + v <= 1)
    depth = z[:, 0] + v * (z[:, 1] - z[:, 0]) + u * (z[:, 2] - z[:, 0])
    return row[inside], column[inside], triangle[inside], depth[inside]


def _expanded(counts: Array) -> tuple[Array, Array]:
    """For each of n things repeated as often as counts (n,) say: which it is, and how many of it came before."""
    of = np.repeat(np.arange(len(counts)), counts)
    return of, np.arange(len(of)) - (np.cumsum(counts) - counts)[of]


def _crossed(corners: Array, y: Array) -> tuple[Array, Array]:
    """Leftmost and rightmost columns (K,) at which triangles (K, 3, 2) cross the heights y (K,); ∞ and −∞ where they do not."""
    first, last = np.full(len(y), np.inf), np.full(len(y), -np.inf)
    for k in range(3):
        a, b = corners[:, k], corners[:, (k + 1) % 3]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (y - a[:, 1]) / (b[:, 1] - a[:, 1])
        on = (share >= -1e-9) & (share <= 1 + 1e-9)
        x = a[on, 0] + share[on] * (b[on, 0] - a[on, 0])
        first[on], last[on] = np.minimum(first[on], x), np.maximum(last[on], x)
    return first, last


def _nearest(row: Array, column: Array, depth: Array, triangle: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Depths (h, w) of the nearest triangles, infinite where there is none, and their indices."""
    best, which = np.full(shape[0] * shape[1], _NEVER), np.zeros(shape[0] * shape[1], dtype=int)
    pixel = row * shape[1] + column
    order = np.argsort(-depth, kind="stable")  # the nearest is written last
    best[pixel[order]], which[pixel[order]] = depth[order], triangle[order]
    return best.reshape(shape), which.reshape(shape)


@dataclass(frozen=True, eq=False)
class _Placed:
    """A shape in the world. A glowing one is drawn in its plain colour, and casts no shadow."""

    kind: str
    size: Sequence[float]
    turn: Array
    place: Array
    color: Array
    mesh: Mesh | None = None
    glows: bool = False

    @cached_property
    def radius(self) -> float:
        """Radius of a bounding sphere [m]."""
        if self.mesh is not None:
            return float(np.linalg.norm(self.mesh.vertices, axis=1).max(initial=0.0))
        if self.kind in ("capsule", "cylinder"):
            return self.size[0] + self.size[1] if self.kind == "capsule" else float(np.hypot(self.size[0], self.size[1]))
        return float(np.linalg.norm(self.size)) if self.kind == "box" else max(self.size)

    @cached_property
    def triangles(self) -> Array:
        """(F, 3, 3) corners in the world [m]."""
        assert self.mesh is not None
        return np.asarray((self.mesh.vertices @ self.turn.T + self.place)[self.mesh.faces])


class _Shadow:
    """Shadow map: what the light sees, in cells of a square around everything drawn."""

    def __init__(self, middle: Array, reach: float) -> None:
        side = np.cross(_LIGHT, (0.0, 1.0, 0.0))
        side /= np.linalg.norm(side)
        self.axes = np.array([side, np.cross(_LIGHT, side), _LIGHT])
        self.middle, self.reach = middle, reach
        self.bias = 0.004 * reach + 0.004
        self.depth = np.full((_SHADE_CELLS, _SHADE_CELLS), _NEVER)

    def cells(self, points: Array) -> tuple[Array, Array]:
        """Cells (K, 2), as real numbers, and depths (K,) of points (K, 3)."""
        u = (points - self.middle) @ self.axes.T
        return ((u[:, :2] + self.reach) * (_SHADE_CELLS / 2 / self.reach)).astype(np.float32), (2 * self.reach - u[:, 2]).astype(np.float32)

    def cast(self, solids: Sequence[_Placed]) -> None:
        """Find the surfaces that the light hits first."""
        n, reach = _SHADE_CELLS, self.reach
        depth = self.depth = np.full((n, n), _NEVER)
        steps = (np.arange(n) + 0.5) / n * 2 * reach - reach
        for s in solids:
            if s.mesh is not None:
                seen = (s.triangles - self.middle) @ self.axes.T
                corners = (seen[..., 1::-1] + reach) * n / 2 / reach
                rows, columns, triangle, d = _fill(corners, 2 * reach - seen[..., 2], (n, n))
                np.minimum(depth, _nearest(rows, columns, d, triangle, (n, n))[0], out=depth)
                continue
            a, b = self.axes[:2] @ (s.place - self.middle)
            i, j = (
                slice(max(0, int((c - s.radius + reach) * n / 2 / reach) - 1), min(n, int((c + s.radius + reach) * n / 2 / reach) + 2))
                for c in (a, b)
            )
            if i.start >= i.stop or j.start >= j.stop:
                continue
            origin = self.middle + steps[i, None, None] * self.axes[0] + steps[None, j, None] * self.axes[1] + 2 * reach * _LIGHT
            t = _meet(s.kind, s.size, (origin - s.place) @ s.turn, np.broadcast_to(-_LIGHT @ s.turn, origin.shape))
            depth[i, j] = np.minimum(depth[i, j], t)

    def clear(self, cells: Array, depths: Array) -> Array:
        """Fraction of the light that reaches points, (K,)."""
        clear = np.zeros(len(cells), dtype=np.float32)
        for shift in ((-0.6, -0.6), (0.6, -0.6), (-0.6, 0.6), (0.6, 0.6)):  # soft edges
            k = np.clip((cells + np.array(shift, dtype=np.float32)).astype(np.int32), 0, _SHADE_CELLS - 1)  # the border is empty
            clear += np.where(self.depth[k[:, 0], k[:, 1]] < depths - self.bias, np.float32(0.0), np.float32(0.25))
        return clear


class _Backdrop:
    """Fixed parts for a fixed camera: rays, sky and floor."""

    def __init__(self, camera: Camera, samples: int, look: Look, floors: Sequence[float], tile: float, shadow: _Shadow) -> None:
        self.camera, self.eye, self.scale = camera, camera.eye, camera.scale * samples
        self.w, self.h = camera.width * samples, camera.height * samples
        x, y = np.meshgrid((np.arange(self.w) + 0.5 - self.w / 2) / self.scale, (self.h / 2 - np.arange(self.h) - 0.5) / self.scale)
        rays = np.stack([x, y, -np.ones_like(x)], axis=-1) @ camera.axes
        self.rays = (rays / np.linalg.norm(rays, axis=-1, keepdims=True)).astype(np.float32)
        self.depth = np.full((self.h, self.w), _NEVER, dtype=np.float32)
        self.color = np.empty((self.h, self.w, 3), dtype=np.float32)
        self.color[:] = look.sky
        for z in floors:
            self._floor(z, look, tile)
        self.floor = np.isfinite(self.depth)
        at = self.eye + self.depth[self.floor, None] * self.rays[self.floor]
        cells, depths = shadow.cells(at)
        # only part of the floor can be in the shade
        near = ((cells > 0) & (cells < _SHADE_CELLS)).all(axis=1)
        self.shaded = np.flatnonzero(self.floor.ravel())[near]
        self.cells, self.depths = cells[near], depths[near]
        light = look.brightness
        self.lit, self.unlit = light * (0.58 + 0.5 * _LIGHT[2]), light * 0.58
        self.light = np.where(self.floor, np.float32(self.lit), np.float32(1.0))

    def _floor(self, z: float, look: Look, tile: float) -> None:
        """Draw a level plane with tiles, fading into the sky."""
        eye = self.eye
        with np.errstate(divide="ignore"):
            t = np.where(self.rays[..., 2] < -1e-6, (z - eye[2]) / np.minimum(self.rays[..., 2], -1e-6), _NEVER)
        seen = (t > 0) & (t < self.depth) & (t < 60 * max(1.0, self.camera.distance / 10))
        at = eye + t[seen, None] * self.rays[seen]
        which = (np.floor(at[:, 0] / tile) + np.floor(at[:, 1] / tile)).astype(int) % 2
        haze = np.clip((t[seen, None] - self.camera.distance) / (4 * self.camera.distance), 0, 1)
        self.color[seen] = (1 - haze) * np.array(look.tiles)[which] + haze * np.array(look.sky)
        self.depth[seen] = t[seen]


class _Canvas:
    """Depth, normal and colour of the first surface that the ray of each pixel hits."""

    def __init__(self, backdrop: _Backdrop) -> None:
        self.backdrop = backdrop
        self.camera, self.eye, self.scale, self.rays = backdrop.camera, backdrop.eye, backdrop.scale, backdrop.rays
        self.w, self.h = backdrop.w, backdrop.h
        self.depth, self.color = backdrop.depth.copy(), backdrop.color.copy()
        self.normal = np.zeros((self.h, self.w, 3), dtype=np.float32)
        self.solid = np.zeros((self.h, self.w), dtype=bool)  # to be lit
        self.covered = np.zeros((self.h, self.w), dtype=bool)

    def _window(self, s: _Placed) -> tuple[slice, slice] | None:
        """Rows and columns around a shape; None if it is not in the picture."""
        centre = self.camera.axes @ (s.place - self.eye)
        if -centre[2] <= s.radius:  # around the camera: parts of a mesh may be in front of it
            return None if s.mesh is None else (slice(0, self.h), slice(0, self.w))
        column, row = self.w / 2 - self.scale * centre[0] / centre[2], self.h / 2 + self.scale * centre[1] / centre[2]
        r = self.scale * s.radius / (-centre[2] - s.radius) + 2
        i, j = (slice(max(0, int(at - r)), max(0, min(end, int(at + r) + 1))) for at, end in ((row, self.h), (column, self.w)))
        return None if i.start >= i.stop or j.start >= j.stop else (i, j)

    def put(self, s: _Placed) -> None:
        """Draw a shape where it is closer than what was drawn before."""
        window = self._window(s)
        if window is None:
            return
        t, normal = self._mesh(s, window) if s.mesh is not None else self._primitive(s, window)
        seen = (t > 0) & (t < self.depth[window])
        if seen.any():
            n = normal(seen)
            self.depth[window][seen], self.color[window][seen] = t[seen], s.color
            self.solid[window][seen], self.covered[window][seen] = not s.glows, True
            self.normal[window][seen] = n / np.maximum(np.linalg.norm(n, axis=-1, keepdims=True), 1e-12)

    def _primitive(self, s: _Placed, window: tuple[slice, slice]) -> tuple[Array, Any]:
        o, d = ((self.eye - s.place) @ s.turn).astype(np.float32), self.rays[window] @ s.turn.astype(np.float32)
        t = _meet(s.kind, s.size, np.broadcast_to(o, d.shape), d)
        return t, lambda seen: _outward(s.kind, s.size, o + t[seen, None] * d[seen]) @ s.turn.T

    def _mesh(self, s: _Placed, window: tuple[slice, slice]) -> tuple[Array, Any]:
        i, j = window
        shape = (i.stop - i.start, j.stop - j.start)
        corners = s.triangles
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        seen = (corners - self.eye) @ self.camera.axes.T
        front = (np.einsum("fi,fi->f", normals, corners[:, 0] - self.eye) < 0) & (seen[..., 2] < -1e-6).all(axis=1)
        normals, seen = normals[front], seen[front]
        depth = -seen[..., 2]
        at = np.stack([self.w / 2 + self.scale * seen[..., 0] / depth, self.h / 2 - self.scale * seen[..., 1] / depth], axis=-1)
        # the inverse of depth is linear in a picture in perspective
        rows, columns, triangle, inverse = _fill(at - [j.start, i.start], 1 / depth, shape)
        z, which = _nearest(rows, columns, 1 / inverse, triangle, shape)
        along_ray = z / np.maximum(-(self.rays[window] @ self.camera.axes[2].astype(np.float32)), 1e-9)
        return along_ray, lambda chosen: normals[which[chosen]]

    def shade(self, shadow: _Shadow, brightness: float) -> None:
        """Apply light: ambient from above, direct where no shape is in the way."""
        back = self.backdrop
        light = back.light.copy()
        light.ravel()[back.shaded] = back.unlit + (back.lit - back.unlit) * shadow.clear(back.cells, back.depths)
        light[self.covered] = 1.0
        at = self.eye.astype(np.float32) + self.depth[self.solid, None] * self.rays[self.solid]
        normal = self.normal[self.solid]
        direct = np.clip(normal @ _LIGHT.astype(np.float32), 0, 1) * shadow.clear(*shadow.cells(at))
        light[self.solid] = brightness * (0.42 + 0.16 * normal[:, 2] + 0.5 * direct)
        self.color *= light[..., None]


# ---- a mechanism ------------------------------------------------------------------------------------------------------------------


class Studio:
    """Takes pictures of one model with one camera.

    Args:
        model: the mechanism.
        states: (K, nq) states that the camera must show.
        solids: shapes to draw; default: those of the model.
        size: width and height [pixels].
        look: "light" or "dark".
        newton: length of an arrow for 1 N [m]; None: no arrows.
        camera: default: one that frames all states.
        samples: rays per pixel, in each direction.
    """

    def __init__(
        self,
        model: Model,
        states: ArrayLike,
        *,
        solids: Sequence[Solid] | None = None,
        size: tuple[int, int] = (520, 400),
        look: str = "light",
        newton: float | None = None,
        camera: Camera | None = None,
        samples: int = 2,
    ) -> None:
        self.model, self.look, self.samples = model, check_look(look), samples
        self.solids = of_model(model) if solids is None else list(solids)
        self._colors = robot_colors(model, self.solids)
        points = outline(model, self.solids, np.atleast_2d(np.asarray(states, dtype=float)))
        self.reach = max(float(np.linalg.norm(np.ptp(points, axis=0))) / 2, 0.05)
        self.camera = camera or camera_for(points, width=size[0], height=size[1])
        self.newton = newton
        centre = (points.min(axis=0) + points.max(axis=0)) / 2
        self._shadow = _Shadow(centre, float(np.linalg.norm(points - centre, axis=1).max()) * 1.05 + 0.02)
        _, floors = self._place(body_placements(model, np.atleast_2d(np.asarray(states, dtype=float))[0]))
        tile = 0.5 * 10.0 ** round(float(np.log10(self.reach)))
        self._backdrop = _Backdrop(self.camera, samples, self.look, floors, tile, self._shadow)

    def picture(self, q: ArrayLike, contacts: Contacts | None = None) -> Array:
        """Draw a state (nq,), with arrows for contact forces if there are any: (height, width, 3) colours from 0 to 1."""
        X = body_placements(self.model, numbers(q, "q", (self.model.nq,)))
        solids, _ = self._place(X)
        canvas = _Canvas(self._backdrop)
        for s in solids:
            canvas.put(s)
        for s in [] if contacts is None or self.newton is None else self._arrows(contacts):
            canvas.put(s)
        self._shadow.cast(solids)
        canvas.shade(self._shadow, self.look.brightness)
        k = self.samples
        return np.asarray(np.clip(canvas.color.reshape(self.camera.height, k, self.camera.width, k, 3).mean((1, 3)), 0, 1))

    def _place(self, X: Array) -> tuple[list[_Placed], list[float]]:
        """Shapes in their poses, and the heights of level planes."""
        solids, floors = [], []
        for s, color in zip(self.solids, self._colors, strict=True):
            R, p = X[s.body, :3, :3], X[s.body, :3, 3]
            turn, place = R @ rotation_matrix(s.quaternion), R @ np.array(s.position) + p
            if s.kind == "plane":
                if turn[2, 2] > 0.999:
                    floors.append(float(place[2]))
            elif s.rgba[3] > 0:
                solids.append(_Placed(s.kind, s.size, turn, place, np.array(color), s.mesh))
        return solids, floors

    def _arrows(self, contacts: Contacts) -> list[_Placed]:
        """Shafts and heads, in colours that distinguish sticking from sliding."""
        assert self.newton is not None
        size = np.linalg.norm(contacts.force, axis=1)
        length = np.minimum(size * self.newton, LONGEST * self.reach * crowd(len(contacts)))
        pressed = np.flatnonzero(length > 0.01 * self.reach)
        normal = np.einsum("ki,ki->k", contacts.force, contacts.normal)
        across = np.sqrt(np.maximum(size**2 - normal**2, 0.0))
        slides = (across >= 0.98 * contacts.friction * normal) & (contacts.friction > 0)
        width = 0.009 * self.reach * crowd(len(contacts))
        # all arrows of a colour are one mesh: a profile rotated about its axis, scaled to the length of each
        placed = []
        for chosen, color in ((pressed[~slides[pressed]], STICKS), (pressed[slides[pressed]], SLIDES)):
            if not len(chosen):
                continue
            way, long = contacts.force[chosen] / size[chosen, None], length[chosen, None]
            head = np.minimum(5 * width, 0.4 * long)
            thin = np.minimum(width, 0.35 * head)
            # rings of the arrow: its radius in units of the shaft's, and its position along the arrow, in lengths and heads
            radii, lengths, heads = (column.repeat(_SIDES) for column in np.array(_ARROW).T)
            angle = np.tile(np.arange(_SIDES) * (2 * np.pi / _SIDES), len(_ARROW))
            local = np.stack([thin * radii * np.cos(angle), thin * radii * np.sin(angle), long * lengths - head * heads], axis=-1)
            turns = np.array([rotation_matrix(turn) for turn in along(way)])
            vertices = np.einsum("kij,kvj->kvi", turns, local) + contacts.position[chosen, None]
            faces = (np.arange(len(chosen))[:, None, None] * local.shape[1] + _ARROW_FACES).reshape(-1, 3)
            middle = vertices.reshape(-1, 3).mean(axis=0)
            mesh = Mesh(vertices.reshape(-1, 3) - middle, faces.astype(np.uint32))
            placed.append(_Placed("mesh", (), np.eye(3), middle, np.array(color) / 255, mesh, glows=True))
        return placed


def picture(model: Model, q: ArrayLike, camera: Camera | None = None, *, width: int = 520, height: int = 400, samples: int = 2) -> Array:
    """Draw a mechanism with light and shadow, without a graphics card or window.

    Args:
        model: the mechanism.
        q: (nq,) configuration.
        camera: default: one that frames the mechanism.
        width, height: size in pixels if no camera is given.
        samples: rays per pixel, in each direction.

    Returns:
        (height, width, 3) colours from 0 to 1.
    """
    return Studio(model, q, camera=camera, size=(width, height), samples=samples).picture(q)
