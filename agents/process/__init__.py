"""Run and end a process: signals, logs, the event loop."""
