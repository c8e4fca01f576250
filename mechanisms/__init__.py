"""Device side: policies, channels, certificates, randomness and the wire format."""
