"""An HTTP gateway for devices that cannot speak Kafka. Guide: docs/gateway.md.

`uploads` handles one upload, `remembered` stores the keys of accepted ones, `app` has the HTTP
handlers, and `run` connects them all.
"""
