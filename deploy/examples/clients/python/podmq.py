#!/usr/bin/env python3
"""A producer and a consumer for PodMQ, with nothing but Python's own library.

    podmq.py produce TOPIC [N]
    podmq.py consume TOPIC GROUP
"""
import base64, http.client, json, os, signal, socket, sys, time
from urllib.parse import urlencode

SOCKET = os.environ.get("PODMQ_SOCKET", "/run/podmq/podmq.sock")


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket. It connects again by itself after close()."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)  # longer than any wait= below
        self.sock.connect(SOCKET)


broker = Connection("podmq")
stopping = False


def stop(*_):
    """Ends a consumer: the call it waits in fails at once. An exception raised
    here instead could be lost, in a destructor that Python happens to run."""
    global stopping
    stopping = True
    if broker.sock:
        try:
            broker.sock.shutdown(socket.SHUT_RDWR)
        except OSError:  # it is not connected
            pass


def call(method, path, body=None, **query):
    """Makes one call and returns its status and JSON. It does not give up: what
    the broker cannot take now (429, 503) is tried again when it says, and a
    broker that is away is waited for. A publish repeated so may arrive twice."""
    delay = 0.1
    while True:
        try:
            broker.request(method, path + "?" + urlencode(query), body)
            answer = broker.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            broker.close()
            if not stopping:
                print(f"broker away ({error!r}), trying again", file=sys.stderr)
            pause, delay = delay, min(delay * 2, 5)
        else:
            if answer.status not in (429, 503):
                return answer.status, json.loads(text or b"{}")
            pause = float(answer.headers.get("Retry-After", 1))
        if not stopping:
            time.sleep(pause)
        if stopping:
            sys.exit(0)


def must(status, answer):
    if status >= 400:
        sys.exit(f"refused: {answer.get('detail', answer)}")
    return answer


def produce(topic, count):
    for i in range(1, count + 1):
        payload = f"python {i}"
        at = must(*call("POST", f"/v1/topics/{topic}/messages", payload.encode(),
                        key=f"user-{i % 4}", wait="5s"))
        print(f"{at['partition']}:{at['offset']} {payload}", flush=True)


def consume(topic, group):
    member = f"python-{os.getpid()}"
    path = f"/v1/topics/{topic}/groups/{group}"
    must(*call("PUT", path))  # fine when it exists
    signal.signal(signal.SIGTERM, stop)
    try:
        while not stopping:
            status, batch = call("POST", path + "/poll", member=member, wait="5s")
            if status == 404:  # a restarted broker knows only the groups in its settings
                must(*call("PUT", path))
                continue
            must(status, batch)
            for m in batch["messages"]:
                payload = base64.b64decode(m["payload_base64"]) if "payload_base64" in m else m["payload"].encode()
                sys.stdout.buffer.write(b"%d:%d %b\n" % (m["partition"], m["offset"], payload))
                sys.stdout.buffer.flush()
            if batch["messages"]:  # the work is done: say so
                status, _ = call("POST", path + "/ack", receipt=batch["receipt"])
                if status == 409:  # handed out again since, or by a broker that is gone
                    print("receipt is stale, going on", file=sys.stderr)
    finally:  # what is not acked goes to the others at once
        try:
            broker.close()
            broker.request("DELETE", f"{path}/members/{member}")
            broker.getresponse().read()
        except OSError:
            pass


if __name__ == "__main__":
    if sys.argv[1:2] == ["produce"] and len(sys.argv) in (3, 4):
        produce(sys.argv[2], int((sys.argv + ["10"])[3]))
    elif sys.argv[1:2] == ["consume"] and len(sys.argv) == 4:
        consume(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)
