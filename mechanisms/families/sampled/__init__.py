"""Records of several attributes: a report is about one of them, drawn with public probabilities."""
