"""The model module: what a robot is, and where it is loaded from."""

from .builder import ModelBuilder
from .load import embedded_names, load
from .model import Model
from .records import Actuator, Body, ConnectLoop, Joint, JointLoop, Loop, Shape, WeldLoop

__all__ = [
    "Actuator",
    "Body",
    "ConnectLoop",
    "Joint",
    "JointLoop",
    "Loop",
    "Model",
    "ModelBuilder",
    "Shape",
    "WeldLoop",
    "embedded_names",
    "load",
]
