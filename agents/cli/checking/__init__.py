"""The checks of `ldpstream check` that ask a broker."""
