"""Channels as exact matrices, and certificates that they keep a policy."""
