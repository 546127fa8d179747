"""The engine without a daemon: namespaces by bubblewrap, as root or as an ordinary user."""
