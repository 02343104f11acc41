"""Agents: model clients, and the example workflows."""
