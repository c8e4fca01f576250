"""The service around Kafka and Faust, what people run, and how it is asked, in eight rooms."""
