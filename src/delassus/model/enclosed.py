"""A model from text embedded in an untrusted file: whatever it says, no other file is opened.

MJCF can name files in many places: <include>, meshes, textures, height fields, skins, flexible bodies, models to attach, plugins. Text that names any is refused. Only
checked elements are compiled: the text is rewritten from them, so that a second parser cannot find others in it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import mujoco

from ..errors import LoadError
from .compiled import Compiled, compiled
from .from_mujoco import from_compiled
from .load import parse
from .model import Model

__all__ = ["load_enclosed"]

# Elements that load other files, or that expand into more than they contain.
REFUSED = {"include", "extension", "plugin", "attach", "model", "replicate", "composite", "flexcomp"}


def _names_file(attribute: str) -> bool:
    return "file" in attribute or attribute.endswith("dir") or attribute in ("plugin", "content_type")


def load_enclosed(text: str, where: str) -> Model:
    """Load MJCF text that names no file and no plugin.

    Args:
        text: MJCF text, as ``Model.to_mjcf`` writes it; neither a path nor a name.
        where: source of the text, for error messages.

    Raises:
        LoadError: it names files or plugins, or is not MJCF.
    """
    root = parse(text, where)
    if root.tag != "mujoco":
        raise LoadError(f"source: {where} has the root element <{root.tag}>; expected <mujoco>.")
    for element in root.iter():
        tag = str(element.tag).lower()
        if tag in REFUSED:
            raise LoadError(f"source: {where} has an element <{element.tag}>, which is not for a model that came inside a file.")
        if found := [key for key in element.attrib if _names_file(key.lower())]:
            raise LoadError(
                f"source: {where} names a file, by {found[0]!r} of <{element.tag}>; a model embedded in a file may not open others."
            )
    checked = ElementTree.tostring(root, encoding="unicode")
    model, omitted = compiled(lambda: mujoco.MjModel.from_xml_string(checked), where)
    return from_compiled(Compiled(model, None, omitted))
