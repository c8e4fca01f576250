"""What commands share: input and output, options, tables, messages."""
