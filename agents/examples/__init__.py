"""Worked examples: agents that run on real input. Each is listed in the setting SIGNOFF_WORKFLOWS to be loaded."""
