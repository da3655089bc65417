"""Compilation of XML by MuJoCo, with its warnings caught and its errors named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import mujoco

from ..errors import DelassusError, LoadError

# MuJoCo's warning handler is global to the process
_ONE_AT_A_TIME = threading.Lock()


class Compiled(NamedTuple):
    """Result of compiling a source with MuJoCo.

    Attributes:
        model: MuJoCo's model.
        name: name to use instead of MuJoCo's.
        omitted: elements that were left out, one line each.
        frames: joints of the source that MuJoCo does not name, and the bodies they carry.
        drawn: geoms that are only drawn.
        details: URDF only: its parsed content.
    """

    model: mujoco.MjModel
    name: str | None = None
    omitted: tuple[str, ...] = ()
    frames: Mapping[str, str] = MappingProxyType({})
    drawn: frozenset[int] = frozenset()
    details: Any = None


def compiled(make: Callable[[], Any], where: str) -> tuple[Any, tuple[str, ...]]:
    """Return MuJoCo's model and its warnings, which it would print."""
    said: list[str] = []
    with _ONE_AT_A_TIME:
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(said.append)
        try:
            return make(), tuple(f"as MuJoCo says: {line.strip()}" for line in said)
        except DelassusError:
            raise
        except (ValueError, RuntimeError, mujoco.FatalError) as error:
            message = str(error).strip()
            if "opening file" in message.lower():
                message += ". Files are looked for from the folder of the MJCF file, and in its meshdir, texturedir or assetdir."
            raise LoadError(f"source: MuJoCo cannot compile {where}: {message}") from None
        finally:
            mujoco.set_mju_user_warning(before)
