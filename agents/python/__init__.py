"""The Python face: what `import ldpstream as ldp` offers, each in a few lines."""
