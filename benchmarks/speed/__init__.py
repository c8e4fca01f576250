"""What a report, a request or an answer costs."""
