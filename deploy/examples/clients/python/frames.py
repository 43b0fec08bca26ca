#!/usr/bin/env python3
"""The binary frames, written and read by hand: frames.py TOPIC GROUP

Publishes a batch of messages of any bytes in one request, polls them back in
one, prints them and acks. Every integer is big-endian.
"""
import socket, os, struct, sys
from http.client import HTTPConnection

FRAMES = "application/vnd.podmq.frames"


def write(key, payload):  # size, key length (0xFFFF: no key), length of the attributes
    k = key or b""
    return struct.pack(">IHH", 4 + len(k) + len(payload), 0xFFFF if key is None else len(k), 0) + k + payload


def read(body):  # partition, offset, attempt, published (ns), receipt length; then as written
    while body:
        partition, offset, attempt, published, receipt = struct.unpack_from(">IQIqH", body)
        body = body[26 + receipt:]
        size, key, attributes = struct.unpack_from(">IHH", body)
        yield partition, offset, body[8 + (key if key != 0xFFFF else 0) + attributes:4 + size]
        body = body[4 + size:]


if __name__ == "__main__":
    topic, group = sys.argv[1:]
    broker = HTTPConnection("podmq")
    broker.sock = socket.socket(socket.AF_UNIX)
    broker.sock.connect(os.environ.get("PODMQ_SOCKET", "/run/podmq/podmq.sock"))

    def call(path, body=None, **headers):
        broker.request("POST", f"/v1/topics/{topic}/{path}", body, headers)
        answer = broker.getresponse()
        data = answer.read()
        if answer.status >= 400:
            sys.exit(data.decode())
        return answer.headers, data

    batch = write(b"user-a", b"plain") + write(b"", b"") + write(None, bytes(range(256)))
    call("batch", batch, **{"Content-Type": FRAMES})
    headers, body = call(f"groups/{group}/poll?wait=1s", Accept=FRAMES)
    for partition, offset, payload in read(body):
        print(f"{partition}:{offset} {payload.hex()}")
    if body:
        call(f"groups/{group}/ack?receipt={headers['Podmq-Receipt']}")
