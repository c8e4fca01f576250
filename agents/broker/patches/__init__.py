"""What is wrong in aiokafka for this service, one file each: what, since when, and its remedy.

Every patch is installed on a client of this service, by the code that makes it: as a subclass or as
an attribute of the object. Other clients in the process, as those of a user's app, keep aiokafka's
own behaviour. The exception is `error_names`, which commands install at their start, and an app to
which the pipeline is attached.
"""
