"""The cost of reports, requests and answers."""
