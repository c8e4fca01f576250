"""What the owner of a partition decides: classifying reports, counting, flushing, finals."""
