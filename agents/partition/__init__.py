"""What the owner of a partition decides: judging, counting, flushing, finals."""
