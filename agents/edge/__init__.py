"""What stands between people's devices and the topics: a library for devices, and an HTTP gateway.

The library is `sender` (docs/how-to/devices.md). In the gateway, for devices that cannot speak
Kafka, `uploads` handles one upload, `upload_keys` stores the keys of accepted ones, `gateway_app`
has the HTTP handlers, and `gateway_process` connects them all (docs/how-to/gateway.md).
"""
