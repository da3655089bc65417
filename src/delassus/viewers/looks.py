"""Colours of bodies and robots, of arrows, and of a light and a dark scene."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._door import unknown
from ..model import Model
from .solids import Solid

__all__ = ["LOOKS", "SLIDES", "STICKS", "Look", "body_colors", "check_look", "robot_colors"]

Color = tuple[float, float, float]
STICKS, SLIDES = (14, 150, 76), (232, 76, 18)  # arrows of contact forces, 0 to 255
# one hue for each robot, well apart: blue, orange, green, purple, gold, teal
_ROBOTS: tuple[Color, ...] = (
    (0.36, 0.52, 0.78),
    (0.85, 0.50, 0.32),
    (0.42, 0.67, 0.42),
    (0.62, 0.47, 0.75),
    (0.83, 0.69, 0.32),
    (0.35, 0.66, 0.68),
)
_GREY = 0.1  # largest difference between the components of a colour that counts as grey


@dataclass(frozen=True)
class Look:
    """Colours of a scene from 0 to 1: sky, two tiles of a floor, lines on it; and the brightness of the light."""

    sky: Color
    tiles: tuple[Color, Color]
    floor: Color
    lines: tuple[Color, Color]
    brightness: float
    dark: bool


LOOKS = {
    "light": Look((0.93, 0.95, 0.98), ((0.80, 0.83, 0.86), (0.70, 0.74, 0.79)), (0.80, 0.83, 0.87), ((0.70, 0.73, 0.78), (0.55, 0.59, 0.65)), 1.0, False),
    "dark": Look((0.09, 0.10, 0.13), ((0.22, 0.24, 0.28), (0.17, 0.19, 0.23)), (0.15, 0.16, 0.19), ((0.22, 0.24, 0.28), (0.31, 0.34, 0.39)), 0.95, True),
}  # fmt: skip


def check_look(look: str) -> Look:
    """Return a look by its name."""
    if look not in LOOKS:
        raise unknown("look", look, LOOKS)
    return LOOKS[look]


def _mechanisms(model: Model) -> list[list[int]]:
    """Bodies of every kinematic tree that has more than one body, in the order of the trees."""
    root = np.zeros(model.nbody, dtype=int)
    for body in range(1, model.nbody):
        parent = int(model.body_parent[body])
        root[body] = root[parent] if parent else body
    trees = [np.flatnonzero(root == top).tolist() for top in dict.fromkeys(root[1:].tolist())]
    return [tree for tree in trees if len(tree) > 1]


def _has_materials(tree: Sequence[int], solids: Sequence[Solid]) -> bool:
    """Whether the meshes of a robot have deliberate colours: more than one, or one with a hue."""
    colors = {s.rgba[:3] for s in solids if s.mesh is not None and s.body in tree}
    return len(colors) > 1 or any(max(color) - min(color) >= _GREY for color in colors)


def robot_colors(model: Model, solids: Sequence[Solid]) -> list[Color]:
    """Colour of every shape: grey shapes get the hue of their robot with their own lightness; all others keep theirs, and so do robots with meshes of several colours."""
    hue = {
        body: _ROBOTS[k % len(_ROBOTS)] for k, tree in enumerate(_mechanisms(model)) for body in tree if not _has_materials(tree, solids)
    }
    colors = []
    for s in solids:
        own = s.rgba[:3]
        if s.body in hue and max(own) - min(own) < _GREY:
            # light grey takes the full hue, black none of it
            light = float(np.clip(sum(own) / 3 / 0.7, 0.0, 1.15))
            r, g, b = (float(np.clip(part * light, 0.0, 1.0)) for part in hue[s.body])
            own = (r, g, b)
        colors.append(own)
    return colors


def body_colors(solids: Sequence[Solid]) -> list[Color]:
    """Colour of every shape: a different one for every body, far apart for neighbours."""
    golden = 0.381966  # of the hue circle: consecutive bodies get distant hues
    return [colorsys.hls_to_rgb((0.58 + golden * s.body) % 1.0, 0.58, 0.5) for s in solids]
