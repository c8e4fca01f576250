"""Reading source, packed and changelog topics, each message once and in order."""
