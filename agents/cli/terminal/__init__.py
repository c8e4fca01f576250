"""What commands share, or load late: input and output, options, tables, checks, messages."""
