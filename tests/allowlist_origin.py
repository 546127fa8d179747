"""The internet of the allowlist tests: a server that notes what arrives. A script: HTTP_PORT TLS_PORT CERT KEY LOG.

The certificate and key are PEM text. Prints `ready HTTP_PORT TLS_PORT`; every connection becomes a JSON line.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import tempfile
import threading


def main(http_port: str, tls_port: str, cert: str, key: str, log: str) -> None:
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w") as both:
        both.write(cert + key)
        both.flush()
        context.load_cert_chain(both.name)

    def serve(client: socket.socket, service: str) -> None:
        note = {"service": service, "data": ""}
        client.settimeout(3)
        try:
            if service == "tls":
                client = context.wrap_socket(client, server_side=True)
            data = b""
            while b"\r\n\r\n" not in data and (more := client.recv(65536)):
                data += more
            note["data"] = data[:2000].decode("latin-1")
            path = data.split(b" ")[1] if data.count(b" ") else b""
            if path.startswith(b"/redirect/"):
                there = path.removeprefix(b"/redirect/")
                client.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://" + there + b"/\r\nContent-Length: 0\r\n\r\n")
            else:
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\norigin")
        except OSError as error:
            note["data"] = f"error {error}"
        os.write(out, json.dumps(note).encode() + b"\n")
        client.close()

    def listen(port: str, service: str) -> int:
        listener = socket.create_server(("0.0.0.0", int(port)), backlog=128)

        def accept() -> None:
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client, service), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        number: int = listener.getsockname()[1]
        return number

    os.write(1, b"ready %d %d\n" % (listen(http_port, "http"), listen(tls_port, "tls")))
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:6])
