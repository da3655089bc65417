"""A mechanism on a viser scene: draws the bodies, ground, contacts and loops of a given state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from ..constraints import Constraint, PointContact, collect
from ..dynamics import forward_dynamics
from ..errors import DelassusError
from ..model import JointLoop, Loop, Model
from ..operators import DelassusOperator
from ..simulator import Contacts
from ..solvers import solve_contacts
from ..spatial import rotation_matrix
from ..state import body_placements
from .looks import SLIDES, STICKS, body_colors, check_look, robot_colors
from .solids import Mesh, Solid, along, capsule, cone, cylinder, quaternions, sphere, torus

__all__ = ["Stage", "crowd", "elimination_shares", "outline", "radius", "resting_forces", "touching", "viewpoint"]

Floats = NDArray[np.float64]

FIELD, ASPECT, MARGIN = np.deg2rad(38), 1.2, 1.12  # camera: field of view, aspect ratio of the region to show, and margin around it
TOWARD, UPWARD = (1.0, -1.35, 0.62), (0.0, 0.0, 1.0)  # from the scene to the camera
POINT, EXAMPLE = (30, 34, 42), (96, 104, 116)
ONE_END, OTHER_END, GAP = (214, 39, 130), (255, 196, 0), (220, 20, 20)
PULL = (216, 32, 120)  # colour of the dragging spring
IDLE = (205, 208, 214)  # bodies that no constraint reaches
HIDDEN = 1e-9  # scale of unused markers
CONE = 0.13  # height of a friction cone, as a fraction of the scene's radius
CROWD = 30  # number of contacts from which their markers shrink
LONGEST = 0.8  # arrow of an impact, as a fraction of the scene's radius
STILL = 1e-6  # a body that moved less than this since its last update is not sent: [m], and quaternion entries


def _color(rgba: Sequence[float]) -> tuple[int, int, int]:
    r, g, b = (round(255 * min(max(c, 0.0), 1.0)) for c in rgba[:3])
    return r, g, b


def _node(name: str) -> str:
    """Name of a scene node, without slashes, which would start a branch."""
    return name.replace("/", "∕")


def resting_forces(model: Model, q: Floats, constraints: Sequence[Constraint]) -> Floats:
    """Return the forces of all rows (m,) [N or N m] on a model released at rest, without torques: λ in its sets with σ = G λ + J a, a the free acceleration; zero where not solved."""
    if not constraints:
        return np.zeros(0)
    G = DelassusOperator(model, constraints)
    G.update(q)
    try:
        found = solve_contacts(G, G.jacobian @ forward_dynamics(model, q, np.zeros(model.nv), np.zeros(model.nv)), constraints)
    except DelassusError:
        return np.zeros(G.shape[0])
    return found.forces if found.status == "solved" else np.zeros_like(found.forces)


def touching(model: Model, q: Floats, constraints: Sequence[Constraint]) -> Contacts:
    """Contacts at the point contacts, with the forces on a model released at rest."""
    X = body_placements(model, q)
    ends = np.cumsum([0, *(c.rows for c in constraints)])
    rows = [slice(a, a + 3) for a, c in zip(ends, constraints, strict=False) if isinstance(c, PointContact)]
    held = [c for c in constraints if isinstance(c, PointContact)]
    impulses = resting_forces(model, q, constraints) if held else np.zeros(0)
    points = [c._recipe[2] for c in constraints if isinstance(c, PointContact)]
    bodies = np.array([p["bodies"] for p in points], dtype=np.int64).reshape(-1, 2)
    local = np.array([p["points"][:3] for p in points], dtype=float).reshape(-1, 3)
    here = X[bodies[:, 0]]
    normals = np.array([p["matrix"][:3] for p in points], dtype=float).reshape(-1, 3)
    friction = np.array([c.friction for c in constraints if isinstance(c, PointContact)], dtype=float)
    axes = np.array([p["matrix"][:9] for p in points], dtype=float).reshape(-1, 3, 3)
    forces = np.einsum("kri,kr->ki", axes, np.array([impulses[at] for at in rows]).reshape(-1, 3))
    return Contacts(np.einsum("kij,kj->ki", here[:, :3, :3], local) + here[:, :3, 3], normals, forces, friction, bodies)


def elimination_shares(model: Model, constraints: Sequence[Constraint | Loop]) -> Floats:
    """Position of each body in the elimination, (nbody,): 0 first, 1 last; NaN if no constraint reaches it or no joint moves it."""
    shares = np.full(model.nbody, np.nan)
    explanation = DelassusOperator(model, collect(model, constraints)).explain()
    reached = explanation.order[explanation.idle :]
    for turn, joint in enumerate(reached):
        shares[model.joint_body[model.joint_index(joint)]] = turn / max(len(reached) - 1, 1)
    # a body without joints has the share of its parent
    carries = np.isin(np.arange(model.nbody), model.joint_body)
    for body in range(1, model.nbody):
        if not carries[body]:
            shares[body] = shares[model.body_parent[body]]
    return shares


def outline(model: Model, solids: Sequence[Solid], states: Floats) -> Floats:
    """Corners (N, 3) of the bounding boxes of everything drawn in states (K, nq), except planes [m]; origins of bodies if there are no shapes."""
    drawn = [s for s in solids if s.kind != "plane"]
    X = np.array([body_placements(model, q) for q in states])
    if not drawn:
        return X[:, :, :3, 3].reshape(-1, 3)
    here = X[:, [s.body for s in drawn]]
    corners = np.array([Rotation.from_quat(np.roll(s.quaternion, -1)).apply(s.corners) + s.position for s in drawn])
    return np.asarray(np.einsum("ksij,scj->ksci", here[..., :3, :3], corners) + here[:, :, None, :3, 3]).reshape(-1, 3)


def crowd(contacts: int) -> float:
    """Return the factor by which contact markers shrink when there are many."""
    return float(np.clip(np.sqrt(CROWD / max(contacts, 1)), 0.35, 1.0))


def radius(points: Floats) -> float:
    """Return half the diagonal of the bounding box of points, or a positive number if they coincide [m]."""
    return max(float(np.linalg.norm(points.max(axis=0) - points.min(axis=0))) / 2, 0.05)


def viewpoint(points: Floats) -> tuple[Floats, Floats]:
    """Return the position and the target of a camera that shows all points, centred [m]."""
    back = np.array(TOWARD) / np.linalg.norm(TOWARD)
    right = np.cross(UPWARD, back)
    axes = np.array([right / np.linalg.norm(right), np.cross(back, right) / np.linalg.norm(right), back])
    seen = points @ axes.T
    center = (seen.min(axis=0) + seen.max(axis=0)) / 2
    x, y, depth = np.abs(seen - center)[:, 0], np.abs(seen - center)[:, 1], (seen - center)[:, 2]
    distance = np.max(depth + MARGIN * np.maximum(y, x / ASPECT) / np.tan(FIELD / 2))
    target = center @ axes
    return target + back * max(float(distance), 0.1), target


class _Markers:
    """Copies of one mesh, at most ``capacity`` shown; for more of them the node is recreated."""

    def __init__(self, scene: Any, name: str, mesh: Mesh, color: tuple[int, int, int], **options: Any) -> None:
        self._scene, self._name, self._mesh, self._color, self._options = scene, name, mesh, color, options
        self._handle: Any = None
        self.reserve(1)

    def reserve(self, capacity: int) -> None:
        """Allocate markers for the number to be shown."""
        if self._handle is not None:
            self._handle.remove()
        self.capacity = capacity
        self._handle = self._scene.add_batched_meshes_simple(
            self._name,
            self._mesh.vertices,
            self._mesh.faces,
            np.tile((1.0, 0.0, 0.0, 0.0), (capacity, 1)),
            np.zeros((capacity, 3)),
            batched_scales=np.full((capacity, 3), HIDDEN),
            batched_colors=np.tile(np.array(self._color, dtype=np.uint8), (capacity, 1)),
            lod="off",
            **self._options,
        )

    def put(self, positions: Floats, turns: Floats, scales: Floats, colors: NDArray[np.uint8] | None = None) -> None:
        """Show one per row: positions (N, 3), turns (N, 4), scales (N, 3), colors (N, 3)."""
        n = len(positions)
        if n > self.capacity:
            self.reserve(2 * n)
        self._handle.batched_positions = self._padded(positions, (0.0, 0.0, 0.0))
        self._handle.batched_wxyzs = self._padded(turns, (1.0, 0.0, 0.0, 0.0))
        self._handle.batched_scales = self._padded(np.maximum(scales, HIDDEN), (HIDDEN,) * 3)
        if colors is not None:
            self._handle.batched_colors = self._padded(colors, self._color).astype(np.uint8)

    def _padded(self, rows: Any, rest: tuple[float, ...]) -> Any:
        full = np.tile(np.array(rest, dtype=np.float32), (self.capacity, 1))
        full[: len(rows)] = rows
        return full


class Stage:
    """Draws a model in any state on a viser scene.

    Args:
        server: viser server.
        model: model to draw.
        solids: its shapes.
        points: (N, 3) extent of the motion; sizes of markers and the camera follow from them.
        contacts: number of contacts to allocate markers for.
        newton: length of an arrow for 1 N [m].
        example: force of the scale arrow on the ground [N]; zero: no arrow.
        look: "light" or "dark".
    """

    def __init__(
        self,
        server: Any,
        model: Model,
        solids: Sequence[Solid],
        points: Floats,
        *,
        contacts: int,
        newton: float,
        example: float = 0.0,
        look: str = "light",
    ) -> None:
        self.model = model
        self._theme = check_look(look)
        self._server, self._scene = server, server.scene
        self._solids = list(solids)
        self._handles: list[Any] = []
        self._frames: dict[int, Any] = {}
        self._sent = np.full((model.nbody, 7), np.inf)
        self.radius = radius(points)
        self._crowd = crowd(contacts)
        self.newton = newton
        self._contacts: Contacts | None = None
        self._loops = [loop for loop in model.loops if not isinstance(loop, JointLoop) and loop.active]
        self._place_scale(points, example)
        self._look(np.vstack([points, self._scale_ends]) if example > 0 else points)
        self._light()
        self._ground(points)
        self._bodies()
        self._markers(contacts)
        self._labels: list[Any] = []
        self._pull: _Markers | None = None
        self._show_scale()

    # ---- fixed parts --------------------------------------------------------------------------------------------------

    def _look(self, points: Floats) -> None:
        self._scene.set_up_direction("+z")
        camera = self._server.initial_camera
        camera.fov = FIELD
        camera.position, camera.look_at = viewpoint(points)
        camera.near, camera.far = self.radius / 200, self.radius * 400

    def _light(self) -> None:
        """Light from above and from one side that preserves colours; viser's own washes them out."""
        dim = 0.75 if self._theme.dark else 1.0
        self._scene.configure_default_lights(False)
        self._scene.configure_environment_map(None)
        self._scene.add_light_hemisphere("/light/sky", sky_color=(255, 255, 255), ground_color=(150, 155, 165), intensity=1.7 * dim)
        self._scene.add_light_directional("/light/sun", intensity=2.1 * dim, cast_shadow=True, position=(0.35, -0.45, 0.82))

    def _ground(self, points: Floats) -> None:
        cell = 10.0 ** np.floor(np.log10(self.radius))
        style: dict[str, Any] = {
            "cell_size": cell / 2, "section_size": cell * 2.5, "cell_color": _color(self._theme.lines[0]), "section_color": _color(self._theme.lines[1]), "cell_thickness": 0.8,
            "section_thickness": 1.1, "fade_distance": 14 * self.radius, "fade_strength": 1.5, "shadow_opacity": 0.22,
        }  # fmt: skip
        planes = [s for s in self._solids if s.kind == "plane"]
        for solid in planes:
            size: dict[str, Any] = {"infinite_grid": True}
            if solid.size[0] > 0 and solid.size[1] > 0:
                size = {"width": 2 * solid.size[0], "height": 2 * solid.size[1]}
            where = f"{self._parent(solid.body)}/{_node(solid.name)}"
            self._scene.add_grid(
                where,
                plane_color=_color(self._theme.floor),
                plane_opacity=1.0,
                wxyz=solid.quaternion,
                position=solid.position,
                **size,
                **style,
            )
        if not planes:
            # no ground in the model: only grid lines, as a scale
            x, y, _ = points.mean(axis=0)
            self._scene.add_grid("/grid", infinite_grid=True, position=(x, y, points[:, 2].min()), **style | {"shadow_opacity": 0.0})

    def _parent(self, body: int) -> str:
        if body == 0:
            return "/world"
        name = f"/bodies/{_node(self.model.body_names[body])}"
        if body not in self._frames:
            frame = self._frames[body] = self._scene.add_frame(name, show_axes=False)
            # viser sends no pose that is the one it has, so a recording that begins at the identity would not say so: a page that goes back to its start keeps a later pose
            frame.wxyz, frame.position = (0.0, 1.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        return name

    def _bodies(self) -> None:
        for solid, color in zip(self._solids, robot_colors(self.model, self._solids), strict=True):
            if solid.kind == "plane":
                continue
            node = f"{self._parent(solid.body)}/{_node(solid.name)}"
            place: dict[str, Any] = {"wxyz": solid.quaternion, "position": solid.position}
            look: dict[str, Any] = {"color": _color(color), "opacity": solid.rgba[3] if solid.rgba[3] < 1 else None}
            if solid.kind == "box":
                handle = self._scene.add_box(node, dimensions=tuple(2 * h for h in solid.size), **look, **place)
            elif solid.kind in ("sphere", "ellipsoid"):
                scale = solid.size if solid.kind == "ellipsoid" else solid.size[0]
                handle = self._scene.add_icosphere(node, radius=1.0, subdivisions=4, scale=scale, **look, **place)
            elif solid.kind == "cylinder":
                handle = self._scene.add_cylinder(node, radius=solid.size[0], height=2 * solid.size[1], **look, **place)
            else:
                mesh = solid.mesh or capsule(solid.size[0], solid.size[1])
                handle = self._scene.add_mesh_simple(node, mesh.vertices, mesh.faces, flat_shading=solid.mesh is not None, **look, **place)
            self._handles.append((solid, handle))

    def _markers(self, contacts: int) -> None:
        scene, flat = self._scene, {"cast_shadow": False, "receive_shadow": False}
        self.groups = {
            name: scene.add_frame(f"/{name}", show_axes=False) for name in ("contact points", "contact forces", "friction cones", "loops")
        }
        self._points = _Markers(scene, "/contact points/points", sphere(12), POINT, **flat)
        self._shafts = _Markers(scene, "/contact forces/shafts", cylinder(), STICKS, **flat)
        self._heads = _Markers(scene, "/contact forces/heads", cone(20, point_up=True), STICKS, **flat)
        self._cones = _Markers(scene, "/friction cones/cones", cone(), STICKS, opacity=0.28, side="double", **flat)
        for markers in (self._points, self._shafts, self._heads, self._cones):
            markers.reserve(max(contacts, 1))
        if self._loops:
            self._ends = _Markers(scene, "/loops/first ends", sphere(16), ONE_END, **flat)
            self._rings = _Markers(scene, "/loops/second ends", torus(), OTHER_END, **flat)
            self._gaps = _Markers(scene, "/loops/gaps", cylinder(), GAP, **flat)
            for markers in (self._ends, self._rings, self._gaps):
                markers.reserve(len(self._loops))

    def _place_scale(self, points: Floats, force: float) -> None:
        """Choose the place of the scale arrow on the ground, between the camera and the scene, across the picture."""
        self._example, self._scale_label = force, None
        low, high = points.min(axis=0), points.max(axis=0)
        toward = np.array([*TOWARD[:2], 0.0]) / np.hypot(*TOWARD[:2])
        front = float(((points - (low + high) / 2) @ toward).max()) + 0.1 * self.radius
        middle = np.array([*(low + high)[:2] / 2, low[2]]) + front * toward
        # what is drawn may reach below the ground, and the arrow lies on it
        middle[2] = max([middle[2], *(z for z in self._ground_heights(middle) if z < high[2])]) + 0.02 * self.radius
        half = np.cross(UPWARD, toward) * force * self.newton / 2
        self._scale_ends = np.array([middle - half, middle + half])

    def _ground_heights(self, place: Floats) -> list[float]:
        """Heights of the world's planes at a place, those that one could stand on [m]."""
        planes = [(rotation_matrix(s.quaternion)[:, 2], np.array(s.position)) for s in self._solids if s.kind == "plane" and s.body == 0]
        return [float(p[2] - normal[:2] @ (place - p)[:2] / normal[2]) for normal, p in planes if normal[2] > 0.3]

    def _show_scale(self) -> None:
        """Draw the scale arrow there, with its label."""
        if self._example <= 0:
            return
        self.groups["force scale"] = self._scene.add_frame("/force scale", show_axes=False)
        flat = {"cast_shadow": False, "receive_shadow": False}
        self._scale = [
            _Markers(self._scene, f"/force scale/{name}", mesh, EXAMPLE, **flat)
            for name, mesh in (("shaft", cylinder()), ("head", cone(20, point_up=True)))
        ]
        text = f"{self._example:g} N"
        self._scale_label = self._scene.add_label("/force scale/text", text, font_screen_scale=0.9, anchor="bottom-center")
        self._draw_scale()

    def _draw_scale(self) -> None:
        if self._scale_label is None:
            return
        middle, length = self._scale_ends.mean(axis=0), self._example * self.newton
        way = np.diff(self._scale_ends, axis=0) / np.linalg.norm(np.diff(self._scale_ends, axis=0))
        r = 0.012 * self.radius
        head = min(5 * r, 0.5 * length)
        start = middle[None] - way * length / 2
        self._scale[0].put(start, along(way), np.array([[0.8 * r, 0.8 * r, length - head]]))
        self._scale[1].put(start + way * (length - head), along(way), np.array([[2.2 * r, 2.2 * r, head]]))
        self._scale_label.position = middle + 0.03 * self.radius * np.array(UPWARD)

    def show_names(self, shown: bool) -> None:
        """Write the names of bodies at their positions."""
        for label in self._labels:
            label.remove()
        self._labels = []
        if shown:
            names = {body: self.model.body_names[body] for body in self._frames}
            self._labels = [
                self._scene.add_label(f"{self._parent(body)}/name", name, font_screen_scale=0.8, anchor="center-center")
                for body, name in names.items()
            ]

    @property
    def has_loops(self) -> bool:
        """Whether any loop has two places to mark."""
        return bool(self._loops)

    # ---- moving parts -------------------------------------------------------------------------------------------------

    def draw(self, q: Floats, contacts: Contacts | None) -> None:
        """Draw a state, and the contacts in it if they are known."""
        X = body_placements(self.model, q)
        poses = np.hstack([X[:, :3, 3], quaternions(X)])
        with self._server.atomic():
            moved = np.abs(poses - self._sent).max(axis=1) > STILL
            for body, handle in self._frames.items():
                if moved[body]:
                    handle.position, handle.wxyz = poses[body, :3], poses[body, 3:]
                    self._sent[body] = poses[body]
            self._draw_loops(X)
            self._draw_contacts(contacts)
        self._contacts = contacts

    def scale_forces(self, newton: float) -> None:
        """Set the length of an arrow for 1 N [m]."""
        self.newton = newton
        with self._server.atomic():
            self._draw_contacts(self._contacts)
            self._draw_scale()

    def draw_pull(self, start: Floats | None, end: Floats | None) -> None:
        """Draw the spring from the dragged point to the pointer; None: hide it."""
        if start is None or end is None:
            if self._pull is not None:
                self._pull.put(np.empty((0, 3)), np.empty((0, 4)), np.empty((0, 3)))
            return
        if self._pull is None:
            self._pull = _Markers(self._scene, "/pull", cylinder(), PULL, cast_shadow=False, receive_shadow=False)
        way = np.asarray(end) - np.asarray(start)
        length = float(np.linalg.norm(way))
        r = 0.008 * self.radius
        self._pull.put(np.asarray(start)[None], along(way[None] / max(length, 1e-12)), np.array([[r, r, length]]))

    def _draw_loops(self, X: Floats) -> None:
        if not self._loops:
            return
        ends = [
            np.array([X[b][:3, :3] @ p + X[b][:3, 3] for b, p in ((self.model.body_index(name), np.array(point)) for name, point in side)])
            for side in ([(loop.body, loop.point) for loop in self._loops], [(loop.other, loop.other_point) for loop in self._loops])
        ]
        n, r = len(self._loops), 0.016 * self.radius
        upright = np.tile((1.0, 0.0, 0.0, 0.0), (n, 1))
        self._ends.put(ends[0], upright, np.full((n, 3), r))
        self._rings.put(ends[1], upright, np.full((n, 3), 1.9 * r))
        gap = ends[1] - ends[0]
        length = np.linalg.norm(gap, axis=1)
        open_ = length > 0.1 * r
        way = np.where(open_[:, None], gap / np.maximum(length, 1e-300)[:, None], UPWARD)
        self._gaps.put(ends[0], along(way), np.stack([0.35 * r * open_, 0.35 * r * open_, length * open_], axis=-1))

    def _draw_contacts(self, contacts: Contacts | None) -> None:
        n = 0 if contacts is None else len(contacts)
        if contacts is None or n == 0:
            empty = np.empty((0, 3))
            for markers in (self._points, self._shafts, self._heads, self._cones):
                markers.put(empty, np.empty((0, 4)), empty)
            return
        r = 0.012 * self.radius * self._crowd
        upright = np.tile((1.0, 0.0, 0.0, 0.0), (n, 1))
        self._points.put(contacts.position, upright, np.full((n, 3), r))

        # arrows: a head of fixed size if there is room for it
        size = np.linalg.norm(contacts.force, axis=1)
        length = np.minimum(size * self.newton, LONGEST * self.radius * self._crowd)
        way = np.where(size[:, None] > 0, contacts.force / np.maximum(size, 1e-300)[:, None], contacts.normal)
        head = np.minimum(5 * r, 0.5 * length)
        width = np.minimum(0.8 * r, 0.2 * length)
        along_normal = np.einsum("ki,ki->k", contacts.force, contacts.normal)
        across = np.sqrt(np.maximum(size**2 - along_normal**2, 0.0))
        slides = (across >= 0.98 * contacts.friction * along_normal) & (size > 0) & (contacts.friction > 0)
        colors = np.where(slides[:, None], SLIDES, STICKS).astype(np.uint8)
        turns = along(way)
        self._shafts.put(contacts.position, turns, np.stack([width, width, length - head], axis=-1), colors)
        wide = np.minimum(2.2 * r, 0.45 * head)
        self._heads.put(contacts.position + way * (length - head)[:, None], turns, np.stack([wide, wide, head], axis=-1), colors)

        # cones, where there is a contact force or none is known
        height = np.where((along_normal > 0) | ~size.any(), CONE * self.radius * self._crowd, 0.0)
        mouth = contacts.friction * height
        self._cones.put(contacts.position, along(contacts.normal), np.stack([mouth, mouth, height], axis=-1), colors)

    # ---- colours ------------------------------------------------------------------------------------------------------

    def color_as_described(self) -> None:
        """Give every shape the colour in its file."""
        for solid, handle in self._handles:
            handle.color = _color(solid.rgba)

    def color_by_robot(self) -> None:
        """Give grey shapes the colour of their robot."""
        self._paint(robot_colors(self.model, [solid for solid, _ in self._handles]))

    def color_by_body(self) -> None:
        """Give every body a different colour."""
        self._paint(body_colors([solid for solid, _ in self._handles]))

    def _paint(self, colors: Sequence[Sequence[float]]) -> None:
        for (_, handle), color in zip(self._handles, colors, strict=True):
            handle.color = _color(color)

    def color_by_share(self, shares: Floats) -> None:
        """Colour bodies by a share (nbody,) from 0 to 1; NaN is grey."""
        from matplotlib import colormaps

        colors = colormaps["viridis"](np.nan_to_num(shares))
        for solid, handle in self._handles:
            handle.color = IDLE if np.isnan(shares[solid.body]) else _color(colors[solid.body])

    def set_opacity(self, opacity: float | None) -> None:
        """Make bodies transparent; None: as described."""
        for solid, handle in self._handles:
            handle.opacity = opacity if opacity is not None else (solid.rgba[3] if solid.rgba[3] < 1 else None)
