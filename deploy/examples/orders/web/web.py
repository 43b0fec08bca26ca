"""Takes orders over HTTP and hands them to the worker: POST /orders with JSON.

An order is accepted (202) once the broker has stored it. While the worker is so
far behind that the topic is full, customers are told to come again (503): the
queue has an end, and they learn of it.
"""
import http.client, json, os, signal, socket, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote


class Broker(http.client.HTTPConnection):
    """HTTP over the broker's Unix socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(10)
        self.sock.connect(os.environ["PODMQ_SOCKET"])


local = threading.local()  # a connection for each customer's, kept while they keep theirs


def publish(topic, key, payload):
    """Stores a message and returns where, or raises OSError: not known to be stored."""
    broker = getattr(local, "broker", None) or Broker("podmq")
    local.broker = broker
    try:
        broker.request("POST", f"/v1/topics/{topic}/messages?wait=2s&key={quote(key)}", payload,
                       {"Content-Type": "application/json"})
        answer = broker.getresponse()
        body = json.loads(answer.read())
    except http.client.HTTPException as error:
        broker.close()
        raise OSError(error) from error
    except OSError:
        broker.close()  # connects again at the next order
        raise
    if answer.status != 201:
        raise OSError(body["detail"])
    return body


class Orders(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5  # of an idle customer, so that a connection kept open does not hold up the end

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            order = json.loads(body)
            customer = order["customer"]
        except (ValueError, KeyError, TypeError):
            return self.answer(400, {"error": "an order is JSON with a customer"})
        try:  # one customer's orders stay in order: they have one key
            stored = publish("orders", str(customer), body)
        except OSError as error:
            return self.answer(503, {"error": str(error)})
        self.answer(202, stored)

    def do_GET(self):
        self.answer(200, {"status": "ok"})

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = False  # on SIGTERM, orders that are being taken are still stored


server = Server(("", 8080), Orders)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
print("taking orders on port 8080", file=sys.stderr)
server.serve_forever()
server.server_close()
