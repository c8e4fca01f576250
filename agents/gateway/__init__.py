"""An HTTP gateway for devices that cannot speak Kafka. Guide: docs/gateway.md.

`uploads` decides about one upload, `remembered` keeps the keys of those that arrived, `app` speaks
HTTP, `listen` bounds connections, `run` holds it all together.
"""
