"""Robots whose motors track position targets."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..model import Model
from ..model import load as load_model

__all__ = ["actuated", "with_servos"]


def with_servos(model: Model, stiffness: ArrayLike, damping: ArrayLike) -> Model:
    """Return the model with a servo in place of each motor: joint force = stiffness · (control − q) − damping · q̇, within the force range of the motor.

    The simulator treats servos implicitly, so stiff ones do not need a small step.

    Args:
        model: its actuators are motors on hinges or slides.
        stiffness, damping: gains [N m/rad, N m s/rad], for slides [N/m, N s/m]; one for all or (nu,).
    """
    m = model.to_mujoco()
    force = np.sort(m.actuator_gear[:, :1] * m.actuator_ctrlrange, axis=1)
    m.actuator_gear[:, 0] = 1.0
    m.actuator_gainprm[:, 0] = stiffness
    m.actuator_biastype[:] = mujoco.mjtBias.mjBIAS_AFFINE
    m.actuator_biasprm[:, 1] = -np.asarray(stiffness)
    m.actuator_biasprm[:, 2] = -np.asarray(damping)
    m.actuator_forcelimited[:] = m.actuator_ctrllimited
    m.actuator_forcerange[:] = force
    m.actuator_ctrllimited[:] = False
    return load_model(m)


def actuated(model: Model) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the columns of q and of v that the actuators drive, in their order."""
    joints = [model.joint_index(a.joint) for a in model.actuators if a.joint is not None]
    return model.joint_qadr[joints], model.joint_vadr[joints]
