"""Motions of models with contacts: what a simulation leaves behind."""

from .trajectory import Contacts, Trajectory

__all__ = ["Contacts", "Trajectory"]
