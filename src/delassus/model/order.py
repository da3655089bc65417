"""Depth-first order of bodies, so that a subtree is a range."""

from __future__ import annotations

from .._door import text
from ..errors import ModelError
from .records import Body, Joint


def depth_first(bodies: tuple[Body, ...], joints: tuple[Joint, ...]) -> tuple[tuple[Body, ...], tuple[Joint, ...]]:
    """Return bodies parents first, children in the order given, each subtree together; joints follow their bodies.

    Raises:
        ModelError: two bodies or joints have the same name, a parent is unknown, or parents form a cycle.
    """
    by_name: dict[str, Body] = {}
    for body in bodies:
        text(body.name, "name of a body")
        if body.name == "world":
            raise ModelError("body 'world': the ground has this name; give the body another.")
        if body.name in by_name:
            raise ModelError(f"body {body.name!r}: two bodies have this name; names must differ.")
        by_name[body.name] = body
    children: dict[str, list[str]] = {"world": [], **{name: [] for name in by_name}}
    for body in bodies:
        if text(body.parent, f"body {body.name!r}: parent") not in children:
            raise ModelError(
                f"body {body.name!r}: its parent {body.parent!r} does not exist. Available: world, {', '.join(list(by_name)[:40])}."
            )
        children[body.parent].append(body.name)

    order: list[Body] = []
    stack = children["world"][::-1]
    while stack:
        name = stack.pop()
        order.append(by_name[name])
        stack.extend(children[name][::-1])
    if len(order) < len(bodies):
        reached = {b.name for b in order}
        lost = [b.name for b in bodies if b.name not in reached]
        raise ModelError(f"bodies {', '.join(map(repr, lost[:6]))}: their parents form a cycle that never reaches the world.")

    of_body: dict[str, list[Joint]] = {name: [] for name in by_name}
    seen: set[str] = set()
    for joint in joints:
        text(joint.name, "name of a joint")
        if text(joint.body, f"joint {joint.name!r}: body") not in of_body:
            raise ModelError(f"joint {joint.name!r}: its body {joint.body!r} does not exist. Available: {', '.join(list(by_name)[:40])}.")
        if joint.name in seen:
            raise ModelError(f"joint {joint.name!r}: two joints have this name; names must differ.")
        seen.add(joint.name)
        of_body[joint.body].append(joint)
    return tuple(order), tuple(j for b in order for j in of_body[b.name])
