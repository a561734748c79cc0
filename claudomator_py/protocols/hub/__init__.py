"""/v1/hub: agents connect, and are given the tasks of the specialist that they are."""
