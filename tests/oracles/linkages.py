"""Mechanisms with loops, as MJCF: Bricard's, a biped whose legs are moved by rods, and one with ball-jointed rods."""

import numpy as np

CORNERS = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
AXES = ("0 1 0", "0 0 1", "1 0 0", "0 1 0", "0 0 1")


def bricard():
    """Bricard's mechanism of the multibody benchmarks: rods of 1 m and 1 kg along six edges of a cube, the last of them the ground, hinges across both rods that they join; gravity along −y.

    Grübler counts no degree of freedom, it has one. The last hinge is two points on its axis.
    """
    bodies = ends = ""
    before = np.zeros(3)
    for k, axis in enumerate(AXES):
        along = CORNERS[k + 1] - CORNERS[k]
        inertia = (1 - np.abs(along)) / 12 + 1e-4 * np.abs(along)
        bodies += f'<body name="rod{k}" pos="{text(CORNERS[k] - before)}"><joint axis="{axis}"/>'
        bodies += f'<inertial pos="{text(along / 2)}" mass="1" diaginertia="{text(inertia)}"/>'
        ends += "</body>"
        before = CORNERS[k]
    closure = "".join(f'<connect body1="rod4" anchor="{text(along + np.array([x, 0, 0]))}"/>' for x in (-0.2, 0.2))
    return (
        f'<mujoco><option timestep=".001" gravity="0 -9.81 0"/><worldbody>{bodies}{ends}</worldbody><equality>{closure}</equality></mujoco>'
    )


def text(x):
    return " ".join(f"{value:.12g}" for value in x)


def rod(name, place, end, joint, mass, more=""):
    return (
        f'<body name="{name}" pos="{text(place)}"><joint {joint}/><geom type="capsule" fromto="0 0 0 {text(end)}" size=".01" mass="{mass}" contype="0" conaffinity="0"/>'
        f"{more}</body>"
    )


def figure(legs, closure):
    return (
        '<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="5 5 1" friction=".8"/><body pos="0 0 .95"><freejoint/>'
        f'<geom type="box" size=".08 .12 .08" mass="8" contype="2"/>{legs}</body></worldbody><equality>{closure}</equality></mujoco>'
    )


def rod_biped(miss=0.0, hips=35.0):
    """A biped whose knees and ankles are planar four-bars with rods; axes and pins are out of plane by ``miss`` [m or rad], as exports of drawings are.

    Hips turn sideways by up to ``hips`` [degrees].
    """
    legs = closure = ""
    for side, y, m in (("l", 0.1, miss), ("r", -0.1, -miss)):
        foot = f'<body pos="0 0 -.35"><joint axis="0 1 {m}"/><geom type="box" size=".1 .04 .015" pos=".03 0 -.03" mass=".6" contype="2"/><site name="heel_{side}" pos="-.08 {m} 0"/></body>'
        lower = rod(
            f"lower_{side}", (-0.06, 0, -0.03), (-0.02, 0, -0.32), 'axis="0 1 0"', 0.15, f'<site name="low_{side}" pos="-.02 0 -.32"/>'
        )
        upper = rod(
            f"upper_{side}", (-0.05, 0, -0.03), (-0.02, 0, -0.36), f'axis="{m} 1 0"', 0.2, f'<site name="up_{side}" pos="-.02 {m} -.36"/>'
        )
        shank = f'<body pos="0 0 -.35"><joint axis="0 1 0"/><site name="knee_{side}" pos="-.07 0 -.04"/><geom type="capsule" fromto="0 0 0 0 0 -.35" size=".03" mass="2" contype="2"/>{foot}{lower}</body>'
        thigh = f'<body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.35" size=".04" mass="3" contype="0" conaffinity="0"/>{upper}{shank}</body>'
        legs += f'<body pos="0 {y} -.05"><joint axis="1 0 0" range="-{hips} {hips}" limited="true"/><geom size=".03" mass=".5" contype="0" conaffinity="0"/>{thigh}</body>'
        closure += f'<connect site1="up_{side}" site2="knee_{side}"/><connect site1="low_{side}" site2="heel_{side}"/>'
    return figure(legs, closure)


def crank_biped(mass=0.05):
    """A biped whose ankles turn about two axes, each moved by two cranks with rods of ``mass`` [kg] in ball joints; all of it has dead centres."""
    legs = closure = ""
    for side, y in (("l", 0.1), ("r", -0.1)):
        cranks = pins = ""
        for k, across in enumerate((0.04, -0.04)):
            link = rod(f"rod{k}_{side}", (-0.06, 0, 0), (0, 0, -0.27), 'type="ball"', mass, f'<site name="end{k}_{side}" pos="0 0 -.27"/>')
            cranks += rod(f"crank{k}_{side}", (0, across, -0.08), (-0.06, 0, 0), 'axis="0 1 0"', 0.08, link)
            pins += f'<site name="pin{k}_{side}" pos="-.06 {across} 0"/>'
            closure += f'<connect site1="end{k}_{side}" site2="pin{k}_{side}"/>'
        foot = f'<body><joint axis="1 0 0"/><geom type="box" size=".1 .04 .015" pos=".03 0 -.03" mass=".6" contype="2"/>{pins}</body>'
        ankle = f'<body pos="0 0 -.35"><joint axis="0 1 0"/><geom size=".01" mass=".05" contype="0" conaffinity="0"/>{foot}</body>'
        shank = f'<body pos="0 0 -.35"><joint axis="0 1 0" range="-126 17" limited="true"/><geom type="capsule" fromto="0 0 0 0 0 -.35" size=".03" mass="2" contype="2"/>{cranks}{ankle}</body>'
        thigh = f'<body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.35" size=".04" mass="3" contype="0" conaffinity="0"/>{shank}</body>'
        legs += f'<body pos="0 {y} -.05"><joint axis="1 0 0" range="-29 29" limited="true"/><geom size=".03" mass=".5" contype="0" conaffinity="0"/>{thigh}</body>'
    return figure(legs, closure)
