"""The status "penetrating": a step whose velocities are right and that leaves a contact deeper than it was. Oracle: the distance of a ball from a plane."""

import pytest

import delassus as dl

RADIUS, SLOP = 0.1, 1e-5


def ball_that_a_loop_pulls_into_the_floor(depth):
    """A ball that rests on the floor, and an equality constraint that holds for its height only at ``depth`` below that."""
    return dl.Simulator(
        f'<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1"/>'
        f'<body pos="0 0 {RADIUS}"><joint name="z" type="slide" axis="0 0 1"/><geom size="{RADIUS}" mass="1"/></body></worldbody>'
        f'<equality><joint joint1="z" polycoef="{-depth} 0 0 0 0"/></equality></mujoco>',
        slop=SLOP,
    )


@pytest.mark.parametrize("depth", [1e-4, 1e-3])
def test_a_loop_that_closes_inside_of_the_floor_is_penetrating_once(depth):
    """No position does both: the loop is closed, the contact is as deep as that takes, and the step says so. The steps after it make nothing deeper."""
    sim = ball_that_a_loop_pulls_into_the_floor(depth)
    step = sim.step()
    assert step.status == "penetrating"
    assert step.penetration == 0
    assert step.loop_error_after <= 1e-10
    assert -step.q[0] == pytest.approx(depth, rel=1e-6)
    assert step.penetration_after == pytest.approx(-step.q[0], rel=1e-6)
    for _ in range(5):
        step = sim.step()
        assert step.status == "solved"
        assert step.penetration == pytest.approx(depth, rel=1e-6)


def test_a_loop_that_is_far_open_stops_at_the_floor():
    """A loop more than a millimetre open does not pull bodies through each other: the contact holds, and the status reports the remaining error."""
    sim = ball_that_a_loop_pulls_into_the_floor(1e-2)
    for _ in range(20):
        step = sim.step()
        assert step.status == "open_loops"
        assert step.penetration_after <= 2 * SLOP
        assert step.loop_error_after == pytest.approx(1e-2, abs=2 * SLOP)
        assert abs(step.v[0]) < 1e-12


@pytest.mark.parametrize(("depth", "status"), [(1.5 * SLOP, "solved"), (2.7 * SLOP, "penetrating")])
def test_a_contact_may_become_deeper_by_twice_the_slop_and_no_more(depth, status):
    step = ball_that_a_loop_pulls_into_the_floor(depth).step()
    assert step.status == status
    assert step.penetration_after == pytest.approx(depth, rel=1e-6)


@pytest.mark.parametrize(("left", "right", "status"), [(0.0, 1e-3, "penetrating"), (1e-4, 5e-4, "penetrating"), (2e-4, 2e-4, "solved")])
def test_a_ball_between_walls_that_are_too_near_to_each_other_goes_deeper_into_one_of_them(left, right, status):
    """Walls that the ball overlaps by ``left`` and ``right``: no place is without overlap. Where one side gets better at the cost of the other, the other is deeper than it was."""
    sim = dl.Simulator(
        f'<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1" zaxis="1 0 0"/>'
        f'<geom type="plane" size="1 1 1" pos="{2 * RADIUS - left - right} 0 0" zaxis="-1 0 0"/>'
        f'<body pos="{RADIUS - left} 0 0"><joint type="slide" axis="1 0 0"/><geom size="{RADIUS}" mass="1"/></body></worldbody></mujoco>',
        slop=SLOP,
    )
    step = sim.step()
    moved = step.q[0]
    after_left, after_right = left - moved, right + moved
    assert step.status == status
    assert (max(after_left - left, after_right - right) > 2 * SLOP) == (status == "penetrating")
    assert step.penetration_after == pytest.approx(max(after_left, after_right), abs=1e-9)
    assert abs(step.v[0]) <= 1e-9  # positions alone were corrected
