"""What does not fit in Faust for this service, one file each: what, since when, and its remedy.

Nothing is installed by an import. `attach` silences the partitions of collections in the client of
the app that it is given; all else is a subclass, which only a worker's own app uses.
"""
