"""What a task file may name: scenarios, runners, contexts, SLA rules, hooks, with their settings.

Read from rally 5.1.1 and rally-openstack 4.1.0. A form is what stands in the file (pydantic); its
`made()` is the value that the program works with.
"""
