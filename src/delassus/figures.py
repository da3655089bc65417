"""Figures for the command line: ray-cast images of mechanisms, and summaries of simulations."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bench import Costs, Motion, PeerMotion
from .model import Model
from .model.records import Shape
from .simulator.files import whole_file
from .spatial import rotation_matrix
from .state import body_placements

__all__ = ["Camera", "frame_of", "picture", "simulation_figure"]

Array = NDArray[Any]
_SKY, _FLOOR, _LIGHT = np.array([0.93, 0.95, 0.98]), np.array([[0.80, 0.83, 0.86], [0.70, 0.74, 0.79]]), np.array([0.35, -0.45, 0.82])
_TINTS = np.array([[0.72, 0.86, 1.15], [1.15, 0.80, 0.66], [0.80, 1.10, 0.78], [1.1, 1.0, 0.7], [0.95, 0.8, 1.1]])
_NEVER = np.inf


@dataclass(frozen=True)
class Camera:
    """Where a picture is taken from: it looks at ``target`` [m] from ``distance`` [m], turned by angles [rad], ``width`` × ``height`` pixels."""

    target: tuple[float, float, float]
    distance: float
    azimuth: float = -2.2
    elevation: float = 0.38
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

    def pixels(self, points: ArrayLike) -> Array:
        """(K, 2) where points (K, 3) are in the picture, columns and rows."""
        x = (np.asarray(points, dtype=float).reshape(-1, 3) - self.eye) @ self.axes.T
        scale = self.height / 2 / np.tan(self.opening / 2) / np.maximum(-x[:, 2], 1e-9)
        return np.stack([self.width / 2 + scale * x[:, 0], self.height / 2 - scale * x[:, 1]], axis=-1)


def frame_of(model: Model, path: ArrayLike, **options: Any) -> Camera:
    """Return a camera that sees all moving bodies in all configurations (T, nq)."""
    places = np.concatenate([body_placements(model, q)[1:, :3, 3] for q in np.atleast_2d(np.asarray(path))])
    low, high = places.min(axis=0), places.max(axis=0)
    middle, reach = (low + high) / 2, max(0.25, float(np.linalg.norm(high - low)) / 2)
    camera = Camera((float(middle[0]), float(middle[1]), float(middle[2])), 2.3 * reach + 0.5, **options)
    edge = 0.1 * np.array([camera.width, camera.height])  # bodies are more than their origins

    def cut(camera: Camera) -> bool:
        at = camera.pixels(places)
        return bool((at < edge).any() or (at > [camera.width, camera.height] - edge).any())

    for _ in range(40):  # what comes towards the camera grows: farther away it does so less
        if not cut(camera):
            break
        camera = replace(camera, distance=1.06 * camera.distance)
    return camera


# ---- rays on shapes, each in its own frame: o + t d, o and d (..., 3) ------------------------------------------------------------


def _dot(a: Array, b: Array, n: int = 3) -> Array:
    return np.asarray(sum(a[..., k] * b[..., k] for k in range(n)))


def _sphere(o: Array, d: Array, r: float) -> Array:
    b, c, a = _dot(o, d), _dot(o, o) - r * r, _dot(d, d)
    square = b * b - a * c
    return np.where(square >= 0, (-b - np.sqrt(np.maximum(square, 0))) / a, _NEVER)


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


def _meet(shape: Shape, o: Array, d: Array) -> Array:
    """Return t where rays first meet a shape, infinite where they do not."""
    size = np.array(shape.size)
    if shape.kind == "sphere":
        return _sphere(o, d, size[0])
    if shape.kind == "ellipsoid":
        return _sphere(o / size, d / size, 1.0)
    if shape.kind == "box":
        return _slabs(o, d, size)
    side = _tube(o, d, size[0], size[1])
    if shape.kind == "capsule":
        ends = [_sphere(o - end, d, size[0]) for end in ((0.0, 0.0, size[1]), (0.0, 0.0, -size[1]))]
        return np.minimum(side, np.minimum(*ends))
    for end in (size[1], -size[1]):  # the lids of a cylinder
        t = (end - o[..., 2]) / np.where(np.abs(d[..., 2]) < 1e-12, 1e-12, d[..., 2])
        x = o + t[..., None] * d
        side = np.minimum(side, np.where(_dot(x, x, 2) <= size[0] ** 2, t, _NEVER))
    return side


def _outward(shape: Shape, x: Array) -> Array:
    """Return normals at points of a shape's surface, not of unit length."""
    size = np.array(shape.size)
    if shape.kind == "ellipsoid":
        return np.asarray(x / size**2)
    if shape.kind == "box":
        share = x / size
        return np.where(np.abs(share) >= np.abs(share).max(-1, keepdims=True) - 1e-9, np.sign(share), 0.0)
    if shape.kind == "sphere":
        return x
    inside = np.clip(x[..., 2], -size[1], size[1])
    if shape.kind == "capsule":
        return np.asarray(x - np.stack([0 * inside, 0 * inside, inside], axis=-1))
    lid = np.abs(x[..., 2]) > size[1] - 1e-9
    return np.where(lid[..., None], np.stack([0 * inside, 0 * inside, inside], axis=-1), x * [1.0, 1.0, 0.0])


@dataclass(frozen=True, eq=False)
class _Placed:
    shape: Shape
    turn: Array
    place: Array
    color: Array

    @property
    def radius(self) -> float:
        """Of a sphere around it [m]."""
        kind, size = self.shape.kind, self.shape.size
        if kind in ("capsule", "cylinder"):
            return size[0] + size[1] if kind == "capsule" else float(np.hypot(size[0], size[1]))
        return float(np.linalg.norm(size)) if kind == "box" else max(size)


def _tints(model: Model) -> dict[str, Array]:
    """Colours that tell mechanisms of several bodies apart; shapes that have a colour of their own keep it."""
    root: dict[str, str] = {}
    for body in model.bodies:
        root[body.name] = root.get(body.parent, body.name)
    several = [name for name in dict.fromkeys(root.values()) if list(root.values()).count(name) > 1]
    grey = {s.body for s in model.shapes if np.ptp(s.rgba[:3]) < 0.1}
    return {name: _TINTS[several.index(top) % len(_TINTS)] for name, top in root.items() if top in several and name in grey}


def _placed(model: Model, q: ArrayLike) -> tuple[list[_Placed], list[float]]:
    """Shapes where they are, and the heights of level planes."""
    X, tints = body_placements(model, q), _tints(model)
    solids, floors = [], []
    for s in model.shapes:
        R, p = X[model.body_index(s.body), :3, :3], X[model.body_index(s.body), :3, 3]
        placed = _Placed(s, R @ rotation_matrix(s.quaternion), R @ np.array(s.position) + p, np.array(s.rgba[:3]) * tints.get(s.body, 1.0))
        if s.kind == "plane":
            if placed.turn[2, 2] > 0.999:
                floors.append(float(placed.place[2]))
        elif s.rgba[3] > 0:
            solids.append(placed)
    return solids, floors


def _shade_map(solids: list[_Placed], light: Array, middle: Array, reach: float, n: int) -> tuple[Array, Array]:
    """Depths (n, n) of shapes seen from the light, and its axes."""
    side = np.cross(light, (0.0, 1.0, 0.0))
    side /= np.linalg.norm(side)
    axes = np.array([side, np.cross(light, side), light])
    steps = (np.arange(n) + 0.5) / n * 2 * reach - reach
    depth = np.full((n, n), _NEVER)
    for s in solids:
        a, b = axes[:2] @ (s.place - middle)
        i, j = (
            slice(max(0, int((c - s.radius + reach) * n / 2 / reach) - 1), min(n, int((c + s.radius + reach) * n / 2 / reach) + 2))
            for c in (a, b)
        )
        if i.start >= i.stop or j.start >= j.stop:
            continue
        origin = middle + steps[i, None, None] * axes[0] + steps[None, j, None] * axes[1] + 2 * reach * light
        t = _meet(s.shape, (origin - s.place) @ s.turn, np.broadcast_to(-light @ s.turn, origin.shape))
        depth[i, j] = np.minimum(depth[i, j], t)
    return depth, axes


def picture(model: Model, q: ArrayLike, camera: Camera, *, samples: int = 2) -> Array:
    """Draw a mechanism's primitive shapes by ray casting, without a graphics card or window.

    Args:
        model: the mechanism.
        q: (nq,) its pose.
        camera: the camera.
        samples: rays per pixel, in each direction.

    Returns:
        (height, width, 3) colours from 0 to 1.
    """
    w, h = camera.width * samples, camera.height * samples
    half = np.tan(camera.opening / 2)
    x, y = np.meshgrid(((np.arange(w) + 0.5) / w * 2 - 1) * half * w / h, (1 - (np.arange(h) + 0.5) / h * 2) * half)
    rays = np.stack([x, y, -np.ones_like(x)], axis=-1) @ camera.axes
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    eye, light = camera.eye, _LIGHT / np.linalg.norm(_LIGHT)
    solids, floors = _placed(model, q)

    depth, normal, color = np.full((h, w), _NEVER), np.zeros((h, w, 3)), np.empty((h, w, 3))
    color[:] = _SKY
    for z in floors:
        with np.errstate(divide="ignore"):
            t = np.where(rays[..., 2] < -1e-6, (z - eye[2]) / np.minimum(rays[..., 2], -1e-6), _NEVER)
        seen = (t > 0) & (t < depth) & (t < 60)
        at = eye + t[seen, None] * rays[seen]
        tile = (np.floor(at[:, 0] / 0.5) + np.floor(at[:, 1] / 0.5)).astype(int) % 2
        haze = np.clip((t[seen, None] - camera.distance) / (4 * camera.distance), 0, 1)
        color[seen], depth[seen], normal[seen] = (1 - haze) * _FLOOR[tile] + haze * _SKY, t[seen], (0.0, 0.0, 1.0)
    scale = h / 2 / half
    for s in solids:
        centre = camera.axes @ (s.place - eye)
        if -centre[2] <= s.radius:
            continue
        column, row = w / 2 - scale * centre[0] / centre[2], h / 2 + scale * centre[1] / centre[2]
        r = scale * s.radius / (-centre[2] - s.radius) + 2
        i, j = (
            slice(max(0, int(row - r)), max(0, min(h, int(row + r) + 1))),
            slice(max(0, int(column - r)), max(0, min(w, int(column + r) + 1))),
        )
        if i.start >= i.stop or j.start >= j.stop:
            continue
        o, d = (eye - s.place) @ s.turn, rays[i, j] @ s.turn
        t = _meet(s.shape, np.broadcast_to(o, d.shape), d)
        seen = (t > 0) & (t < depth[i, j])
        if seen.any():
            at = o + t[seen, None] * d[seen]
            n = _outward(s.shape, at)
            depth[i, j][seen], color[i, j][seen] = t[seen], s.color
            normal[i, j][seen] = n / np.linalg.norm(n, axis=-1, keepdims=True) @ s.turn.T

    # light: even from above, direct where no shape is between
    hit = np.isfinite(depth)
    at = eye + depth[hit, None] * rays[hit]
    direct = np.clip(normal[hit] @ light, 0, 1)
    if solids:
        middle, cells = np.mean([s.place for s in solids], axis=0), 900
        reach = max(float(np.linalg.norm(s.place - middle)) + s.radius for s in solids)
        shade, axes = _shade_map(solids, light, middle, reach, cells)
        u = (at - middle) @ axes.T
        clear = np.zeros(len(at))
        for shift in ((-0.6, -0.6), (0.6, -0.6), (-0.6, 0.6), (0.6, 0.6)):  # soft edges
            k = ((u[:, :2] + reach) * cells / 2 / reach + shift).astype(int)
            inside = ((k >= 0) & (k < cells)).all(-1)
            k = np.clip(k, 0, cells - 1)
            clear += np.where(inside & (shade[k[:, 0], k[:, 1]] < 2 * reach - u[:, 2] - 0.012), 0.0, 0.25)
        direct *= clear
    color[hit] *= (0.42 + 0.16 * normal[hit, 2] + 0.5 * direct)[:, None]
    smooth = color.reshape(camera.height, samples, camera.width, samples, 3).mean((1, 3))
    return np.asarray(np.clip(smooth, 0, 1))


# ---- how a simulation went -------------------------------------------------------------------------------------------------------


def _log(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)


def simulation_figure(path: str | os.PathLike[str], motion: Motion, peer: PeerMotion | None, costs: Costs | None) -> None:
    """Draw three moments of a simulation, its contacts and forces, its penetration beside MuJoCo's, where time goes, and what a matrix would cost.

    Args:
        path: of a PNG file.
        motion: ours.
        peer: MuJoCo's, if there is one.
        costs: of the operator in one pose, if there are constraints.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    tr = motion.trajectory
    figure = Figure(figsize=(13, 6.6), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.3, 1.0), squeeze=False).ravel()
    moments = [round(share * (len(tr) - 1)) for share in (0.0, 0.5, 1.0)]
    camera = frame_of(tr.model, tr.q[moments])
    sizes = np.linalg.norm(tr.contact_force, axis=1)
    strength = max(1e-9, float(np.quantile(sizes, 0.98))) if len(sizes) else 1.0
    for ax, k in zip(upper.subplots(1, 3), moments, strict=True):
        ax.imshow(picture(tr.model, tr.q[k], camera))
        touching = tr.contacts(k)
        size = np.linalg.norm(touching.force, axis=1, keepdims=True)
        arrows = 0.08 * camera.distance * touching.force / np.maximum(size, 1e-12) * np.sqrt(np.minimum(size / strength, 1.5))
        ends = np.stack([camera.pixels(touching.position), camera.pixels(touching.position + arrows)], axis=1)
        ax.add_collection(LineCollection(list(ends), colors="#d1260f", linewidths=0.8, alpha=0.7))
        ax.set(xlim=(0, camera.width), ylim=(camera.height, 0))
        ax.set_title(f"t = {tr.times[k]:.2f} s" + (f", {len(touching)} contacts" if k else ""), fontsize=10)
        ax.axis("off")

    depth, work, stages, bars = lower.subplots(1, 4)
    t = tr.times[0] + (np.arange(len(motion.seconds)) + 1) * (tr.times[-1] - tr.times[0]) / len(motion.seconds)
    ours, theirs = "#1f5fa8", "#e08a1e"
    if peer is not None:
        depth.semilogy(t, _log(1e3 * peer.penetration), color=theirs, linewidth=1.1, label="MuJoCo")
    depth.semilogy(t, _log(1e3 * motion.penetration), color=ours, linewidth=1.1, label="delassus")
    depth.set(title="Deepest penetration [mm]", xlabel="t [s]")
    depth.set_ylim(bottom=3e-4)
    depth.legend(frameon=False, fontsize=8)

    work.semilogy(t, _log(motion.residual), color="#7b3fa0", linewidth=0.8)
    work.set_ylim(bottom=1e-9)
    work.set(title="Contact residual [m/s]", xlabel="t [s]")

    names = [name for name in motion.stages if name != "step"]
    stages.ticklabel_format(axis="x", scilimits=(-1, 5))
    stages.locator_params(axis="x", nbins=4)
    stages.barh(names, [1e6 * motion.stages[name] for name in names], color=ours)
    stages.invert_yaxis()
    stages.set(title=f"A step: {1e3 * motion.stages['step']:.2g} ms", xlabel="mean [µs]")

    if costs is None:
        bars.axis("off")
    else:
        what = ("update\nand factor", "G x", "(G + ρ)⁻¹ y")
        pairs = (costs.update, costs.product, costs.solve)
        for k, (name, color) in enumerate((("matrix-free", ours), ("explicit", theirs))):
            drawn = bars.bar(np.arange(3) + 0.4 * k - 0.2, [pair[k] for pair in pairs], 0.38, color=color, label=name)
            bars.bar_label(drawn, fmt="%.3g", fontsize=7)
        bars.set_yscale("log")
        bars.set_xticks(range(3), what, fontsize=8)
        bars.set_ylim(top=8 * max(max(pair) for pair in pairs))
        bars.set(title=f"{costs.rows} rows [µs]")
        bars.legend(frameon=False, fontsize=8)
    for ax in (depth, work, stages, bars):
        ax.title.set_fontsize(10)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
    with whole_file(path, "figure") as file:
        figure.savefig(file, dpi=100, format="png")
