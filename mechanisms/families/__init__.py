"""The mechanisms, a folder a family: channel, device, decoder and proof side by side."""
