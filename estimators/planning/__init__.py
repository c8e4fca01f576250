"""What a mechanism will cost before anybody reports."""
