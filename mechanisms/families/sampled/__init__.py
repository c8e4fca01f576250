"""Records of several attributes, one of which is drawn with public probabilities and reported."""
