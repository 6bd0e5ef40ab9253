# SPDX-License-Identifier: MIT
"""github_api.py - GitHub's comments of one pull request, on loopback

usage: github_api.py PORT-FILE STATE.json

STATE.json holds {"comments": [{"id", "body"}..], "may_write": bool, "token": ".."} and is
read before each request and written after it; requests are logged in it as "log".
Replies are those of the REST API: lists in pages, 401 for another token, 403 where the
token may not write (that of a fork's pull request), 404 for another repository.
"""
import http.server
import json
import re
import sys
import urllib.parse

PORT_FILE, STATE = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, state, sent):
        """Status and value for a request."""
        url = urllib.parse.urlparse(self.path)
        query = urllib.parse.parse_qs(url.query)
        listed = re.fullmatch(r"/repos/owner/engine/issues/7/comments", url.path)
        one = re.fullmatch(r"/repos/owner/engine/issues/comments/(\d+)", url.path)
        if self.headers.get("Authorization") != f"Bearer {state['token']}":
            return 401, {"message": "Bad credentials"}
        if self.command == "GET" and listed:
            n, page = int(query["per_page"][0]), int(query["page"][0])
            return 200, state["comments"][n * (page - 1):n * page]
        if not state["may_write"]:
            return 403, {"message": "Resource not accessible by integration"}
        if self.command == "POST" and listed:
            number = 1000 + len(state["comments"])
            state["comments"].append({"id": number, "body": sent["body"]})
        elif self.command == "PATCH" and one:
            number = int(one[1])
            [c] = [c for c in state["comments"] if c["id"] == number]
            c["body"] = sent["body"]
        else:
            return 404, {"message": "Not Found"}
        return (201 if listed else 200), {
            "id": number, "html_url": f"https://github.example/owner/engine/pull/7#{number}"}

    def serve(self):
        with open(STATE) as f:
            state = json.load(f)
        length = int(self.headers.get("Content-Length") or 0)
        sent = json.loads(self.rfile.read(length)) if length else None
        status, value = self.answer(state, sent)
        state.setdefault("log", []).append(f"{self.command} {self.path} {status}")
        with open(STATE, "w") as f:
            json.dump(state, f)
        self.reply(status, value)

    do_GET = do_POST = do_PATCH = serve

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open(PORT_FILE, "w") as f:
    f.write(str(server.server_port))
server.serve_forever()
