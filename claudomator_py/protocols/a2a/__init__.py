"""The daemon as an A2A agent, in versions 1.0 and 0.3: its agent card, and tasks over JSON-RPC."""
