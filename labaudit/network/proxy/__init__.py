"""The egress proxy: exact hosts, checked addresses, visible names; every decision a line.

Standard library only and relative imports only, because this folder is mounted as it is into a sidecar container and
started there with `python3 -m proxy CONFIG`.
"""
