"""Running and ending a process: signals, logs, the event loop."""
