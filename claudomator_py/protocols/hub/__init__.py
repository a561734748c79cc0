"""/v1/hub: agents connect as specialists and receive their tasks."""
