"""The daemon as a process: its loop and lock, signals, log, configuration and service manager."""
