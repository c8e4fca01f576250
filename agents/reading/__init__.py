"""Reading source and changelog topics, each message once and in order."""
