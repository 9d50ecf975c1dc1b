"""What a task file may name: scenarios, runners, contexts, SLA rules, hooks and their settings.

Taken from rally 5.1.1 and rally-openstack 4.1.0. A form (pydantic) describes the settings in the
file; its `to_model()` returns the value that the program uses.
"""
