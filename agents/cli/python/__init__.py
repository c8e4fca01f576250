"""The public functions of `import ldpstream as ldp`."""
