"""What a machine and an engine can do, found out by trying: self-check list, egress self-test, kernel features."""
