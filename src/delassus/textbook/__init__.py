"""Textbook."""
