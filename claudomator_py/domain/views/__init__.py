"""JSON shapes of the API that the engine knows as well. Field order is the order of the JSON.

Instants are RFC 3339 strings in UTC (see ``domain.units.format_instant``); states are upper case; priorities are names.
Tokens and cost are the run's own share. A signal is a negative exit code.
"""
