"""`send --id`: an input that is counted once, and the journal of its reports."""
