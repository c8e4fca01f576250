"""`send --id`: count an input once, with a journal of its reports."""
