#!/usr/bin/env python3
"""A client of `tertulia serve --socket PATH`: create, talk, list, search, fork, export, delete."""
import json, socket, sys

class Tertulia:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile("r", encoding="utf-8", newline="\n")
        self.asked = 0

    def send(self, kind, **fields):
        self.asked += 1
        line = json.dumps({"type": kind, "id": self.asked, **fields}) + "\n"
        self.socket.sendall(line.encode())
        return self.asked

    def answers(self, request):
        """The answers to one request; those to others are passed over."""
        for line in self.lines:
            answer = json.loads(line)
            if answer.get("id") == request:
                yield answer

    def ask(self, kind, **fields):
        answer = next(self.answers(self.send(kind, **fields)))
        if answer["type"] == "error":
            raise RuntimeError(answer["message"])
        return answer

    def query(self, words, allow=lambda tool: False):
        text = ""
        for answer in self.answers(self.send("query", query=words)):
            if answer["type"] == "token":
                text += answer["text"]
            elif answer["type"] == "tool_request":
                self.send("tool_approve", tool_id=answer["tool_id"], approved=allow(answer))
            elif answer["type"] == "complete":
                return text, answer

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: client.py SOCKET (`tertulia serve --detach` prints it)")
    talk = Tertulia(sys.argv[1])
    print("with", talk.ask("initialize", demo_mode=True)["agent"])
    session = talk.ask("session_create", title="From Python")["session_id"]
    code = "```python\nif True:\n    print('é')\n```"
    text, end = talk.query("echo Look:\n" + code)
    print("heard", json.dumps(text), end["status"])
    print("listed", [row["title"] for row in talk.ask("session_list", limit=1)["sessions"]])
    print("found", len(talk.ask("session_search", query="Look")["hits"]) > 0)
    fork = talk.ask("session_fork", session_id=session)["session_id"]
    exported = talk.ask("session_export", session_id=session, format="markdown")["content"]
    print("intact", exported.count(code) == 2)
    print("deleted", talk.ask("session_delete", session_id=fork)["success"])
