"""The records that make up a model, as plain immutable values. Points and axes are in body coordinates, SI units, quaternions (w, x, y, z)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from .._door import numbers, text
from ..errors import QuaternionError

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
JointType = Literal["hinge", "slide", "ball", "free"]
LoopKind = Literal["connect", "ball", "weld", "hinge", "universal", "prismatic", "cylindrical", "planar", "distance", "gear", "coupling"]

UNBOUNDED = (-math.inf, math.inf)
QUATERNION_SLACK = 1e-6  # deviation of a quaternion's length from 1 that counts as rounding
IDENTITY: Quaternion = (1.0, 0.0, 0.0, 0.0)
ZERO: Vector = (0.0, 0.0, 0.0)

JOINT_TYPES: tuple[JointType, ...] = ("hinge", "slide", "ball", "free")
VELOCITIES: dict[str, int] = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}
COORDINATES: dict[str, int] = {"hinge": 1, "slide": 1, "ball": 4, "free": 7}
SHAPE_SIZES: dict[str, int] = {"plane": 3, "sphere": 1, "capsule": 2, "ellipsoid": 3, "cylinder": 2, "box": 3}


@dataclass(frozen=True, slots=True)
class Body:
    """A rigid body.

    ``position`` and ``quaternion`` place its frame in its parent's with its joints at their reference; ``inertia`` is
    (xx, yy, zz, xy, xz, yz) about its centre of mass ``com``, in body axes.
    """

    name: str
    parent: str
    position: Vector = ZERO
    quaternion: Quaternion = IDENTITY
    mass: float = 0.0
    com: Vector = ZERO
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint between a body and its parent; several on one body act in the order given.

    ``reference`` is the coordinate of a hinge [rad] or slide [m] at which the body has its described pose. ``range`` bounds the
    coordinate (for a ball, the rotation angle). ``spring_reference`` are the coordinates at which a spring is relaxed.
    """

    name: str
    type: JointType
    body: str
    axis: Vector = (0.0, 0.0, 1.0)
    position: Vector = ZERO
    reference: float = 0.0
    range: tuple[float, float] = (-math.inf, math.inf)
    armature: float = 0.0
    damping: float = 0.0
    stiffness: float = 0.0
    spring_reference: tuple[float, ...] = ()
    friction_loss: float = 0.0


@dataclass(frozen=True, slots=True)
class Frame:
    """A named frame fixed to a body, such as that of a tool, a sensor or a foot. Usable wherever a body is expected; points and axes are then in its coordinates.

    ``body`` names the body, or another frame, that carries it; ``position`` (3,) [m] and ``quaternion`` (4,) place it there.

    Examples:
        >>> import delassus as dl
        >>> model = dl.load("iiwa")
        >>> tip = dl.Frame("tip", "link7", position=(0.0, 0.0, 0.1))
        >>> dl.frame_jacobian(model, model.neutral(), tip).shape
        (6, 7)
    """

    name: str
    body: str
    position: Vector = ZERO
    quaternion: Quaternion = IDENTITY

    def __post_init__(self) -> None:
        name = text(self.name, "name")
        text(self.body, f"frame {name!r}: body")
        position = numbers(self.position, f"frame {name!r}: position", (3,))
        turn = numbers(self.quaternion, f"frame {name!r}: quaternion", (4,))
        length = math.sqrt(float(turn @ turn))
        if not abs(length - 1) <= QUATERNION_SLACK:
            raise QuaternionError(f"frame {name!r}: quaternion (w, x, y, z) must have length 1, got {length:g}. Divide it by its length.")
        object.__setattr__(self, "position", tuple(position.tolist()))
        object.__setattr__(self, "quaternion", tuple(turn.tolist()))

    @property
    def is_body(self) -> bool:
        """Whether it is the frame of its body."""
        return self.position == ZERO and self.quaternion == IDENTITY


@dataclass(frozen=True, slots=True)
class Shape:
    """A collision shape fixed to a body. ``size`` is MuJoCo's: radius, half lengths; capsules and cylinders lie along z."""

    name: str
    body: str
    kind: str
    size: tuple[float, ...]
    position: Vector = ZERO
    quaternion: Quaternion = IDENTITY
    friction: Vector = (1.0, 0.005, 0.0001)
    contype: int = 1
    conaffinity: int = 1
    condim: int = 3
    margin: float = 0.0
    rgba: tuple[float, float, float, float] = (0.5, 0.5, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class ConnectLoop:
    """Two points, one on each body, stay together (3 rows)."""

    kind: ClassVar[str] = "connect"
    name: str
    body: str
    other: str
    point: Vector
    other_point: Vector
    active: bool = True


@dataclass(frozen=True, slots=True)
class WeldLoop:
    """Two frames, one on each body, stay together (6 rows)."""

    kind: ClassVar[str] = "weld"
    name: str
    body: str
    other: str
    point: Vector
    quaternion: Quaternion
    other_point: Vector
    other_quaternion: Quaternion
    active: bool = True


@dataclass(frozen=True, slots=True)
class AxisLoop:
    """A point and an axis on each body; subclasses define what they constrain."""

    kind: ClassVar[str] = ""
    name: str
    body: str
    other: str
    point: Vector
    axis: Vector
    other_point: Vector
    other_axis: Vector
    active: bool = True


@dataclass(frozen=True, slots=True)
class HingeLoop(AxisLoop):
    """Points and axes stay together: bodies rotate about the axis (5 rows)."""

    kind: ClassVar[str] = "hinge"


@dataclass(frozen=True, slots=True)
class UniversalLoop(AxisLoop):
    """Points stay together, axes perpendicular to each other: bodies rotate about both (4 rows)."""

    kind: ClassVar[str] = "universal"


@dataclass(frozen=True, slots=True)
class CylindricalLoop(AxisLoop):
    """Axes stay on one line: bodies slide along it and rotate about it (4 rows)."""

    kind: ClassVar[str] = "cylindrical"


@dataclass(frozen=True, slots=True)
class PlanarLoop(AxisLoop):
    """Planes perpendicular to the axes coincide: bodies slide on the plane and rotate about its normal (3 rows)."""

    kind: ClassVar[str] = "planar"


@dataclass(frozen=True, slots=True)
class PrismaticLoop:
    """Frames stay parallel, the other's point on a line of the body: bodies slide along the axis (5 rows)."""

    kind: ClassVar[str] = "prismatic"
    name: str
    body: str
    other: str
    point: Vector
    axis: Vector
    quaternion: Quaternion
    other_point: Vector
    other_quaternion: Quaternion
    active: bool = True


@dataclass(frozen=True, slots=True)
class DistanceLoop:
    """Two points, one on each body, keep their distance (1 row)."""

    kind: ClassVar[str] = "distance"
    name: str
    body: str
    other: str
    point: Vector
    other_point: Vector
    length: float
    active: bool = True


@dataclass(frozen=True, slots=True)
class JointLoop:
    """One coordinate follows another: q − ref = Σ c_k (q_other − ref_other)^k; without ``other`` it stays at c_0 (1 row)."""

    kind: ClassVar[str] = "coupling"
    name: str
    joint: str
    other: str | None
    polynomial: tuple[float, float, float, float, float]
    active: bool = True


Loop = ConnectLoop | WeldLoop | HingeLoop | UniversalLoop | PrismaticLoop | CylindricalLoop | PlanarLoop | DistanceLoop | JointLoop
LOOPS: tuple[type, ...] = get_args(Loop)


@dataclass(frozen=True, slots=True)
class Actuator:
    """A force on one joint: gear · (gain · u + bias₀ + bias₁ q + bias₂ q̇), clipped to ``force_range`` before the gear.

    ``joint`` None: an actuator of a file whose law this record cannot represent (a muscle, a filter, a tendon drive …). MuJoCo computes its force from the state and
    its controls (``controls`` of them, usually one); the other attributes are not used.
    """

    name: str
    joint: str | None
    gear: float = 1.0
    gain: float = 1.0
    bias: Vector = ZERO
    control_range: tuple[float, float] = (-math.inf, math.inf)
    force_range: tuple[float, float] = (-math.inf, math.inf)
    controls: int = 1
