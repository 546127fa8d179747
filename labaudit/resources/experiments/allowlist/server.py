"""A stand-in for a model provider: answers POST /answer with the reversed text. Standard library only."""

import http.server
import json
import sys


class Answers(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        size = min(int(self.headers.get("Content-Length", 0)), 65536)
        text = json.loads(self.rfile.read(size))["text"]
        body = json.dumps({"text": text[::-1]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Answers)
print("ready", server.server_address[1], flush=True)
server.serve_forever()
