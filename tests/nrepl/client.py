"""A client of nREPL: bencode over a socket, with answers as dictionaries."""

import socket
import time


def encode(value):
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, str):
        data = value.encode()
        return b"%d:%s" % (len(data), data)
    if isinstance(value, list):
        return b"l" + b"".join(map(encode, value)) + b"e"
    return b"d" + b"".join(encode(key) + encode(value[key]) for key in sorted(value)) + b"e"


def decode(data, at=0):
    """Returns a value and where it ends; raises IndexError or ValueError where the data is not whole."""
    kind = data[at : at + 1]
    if not kind:
        raise IndexError
    if kind == b"i":
        end = data.index(b"e", at)
        return int(data[at + 1 : end]), end + 1
    if kind in b"ld":
        items, at = [], at + 1
        while data[at : at + 1] != b"e":
            item, at = decode(data, at)
            items.append(item)
        if kind == b"l":
            return items, at + 1
        return dict(zip(items[::2], items[1::2])), at + 1
    colon = data.index(b":", at)
    length = int(data[at:colon])
    end = colon + 1 + length
    if end > len(data):
        raise IndexError
    return data[colon + 1 : end].decode(), end


class Client:
    def __init__(self, port, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.data = b""
        self.number = 0

    def send(self, message):
        self.number += 1
        message = {"id": str(self.number), **message}
        self.socket.sendall(encode(message))
        return message["id"]

    def receive(self):
        while True:
            try:
                value, end = decode(self.data)
                self.data = self.data[end:]
                return value
            except (IndexError, ValueError):
                pass
            more = self.socket.recv(65536)
            if not more:
                raise EOFError
            self.data += more

    def until_done(self, number):
        """Returns the answers to a request, up to and with the last."""
        answers = []
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                answers.append(answer)
                if "done" in answer.get("status", []):
                    return answers

    def ask(self, message):
        return self.until_done(self.send(message))

    def clone(self):
        return self.ask({"op": "clone"})[-1]["new-session"]

    def close(self):
        self.socket.close()
