import java.io.*;
import java.net.*;
import java.nio.channels.*;
import java.nio.file.Path;
import java.util.*;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * A producer and a consumer for PodMQ, with nothing but the JDK (17 or later).
 *
 * <pre>
 *     java PodMQ.java produce TOPIC [N]
 *     java PodMQ.java consume TOPIC GROUP
 * </pre>
 *
 * The JDK has no JSON and its HTTP client no Unix sockets; so this speaks HTTP by
 * hand and polls binary frames, which DataInputStream reads as they are.
 */
public class PodMQ {
    static final Path SOCKET = Path.of(System.getenv().getOrDefault("PODMQ_SOCKET", "/run/podmq/podmq.sock"));

    record Answer(int status, Map<String, String> headers, byte[] body) {}

    /** One request on a connection of its own. */
    static Answer once(String method, String target, byte[] body) throws IOException {
        try (var channel = SocketChannel.open(UnixDomainSocketAddress.of(SOCKET))) {
            var head = method + " " + target + " HTTP/1.1\r\nHost: podmq\r\nConnection: close\r\n"
                    + "Accept: application/vnd.podmq.frames\r\nContent-Length: " + body.length + "\r\n\r\n";
            var out = new BufferedOutputStream(Channels.newOutputStream(channel));
            out.write(head.getBytes(UTF_8));
            out.write(body);
            out.flush();
            var in = new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel)));
            int status = Integer.parseInt(line(in).split(" ")[1]);
            var headers = new TreeMap<String, String>(String.CASE_INSENSITIVE_ORDER);
            for (String l = line(in); !l.isEmpty(); l = line(in)) {
                headers.put(l.substring(0, l.indexOf(':')), l.substring(l.indexOf(':') + 1).trim());
            }
            var answer = new byte[Integer.parseInt(headers.getOrDefault("Content-Length", "0"))];
            in.readFully(answer);
            return new Answer(status, headers, answer);
        }
    }

    static String line(InputStream in) throws IOException {
        var line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) throw new EOFException("the broker hung up");
            if (c != '\r') line.append((char) c);
        }
        return line.toString();
    }

    /**
     * Makes one call. It does not give up: what the broker cannot take now (429,
     * 503) is tried again when it says, and a broker that is away is waited for. A
     * publish repeated so may arrive twice.
     */
    static Answer call(String method, String target, byte[] body) throws InterruptedException {
        for (long delay = 100; ; delay = Math.min(delay * 2, 5000)) {
            try {
                var answer = once(method, target, body);
                if (answer.status != 429 && answer.status != 503) return answer;
                Thread.sleep(1000 * Long.parseLong(answer.headers.getOrDefault("Retry-After", "1")));
                delay = 100;
            } catch (IOException e) {
                if (Thread.interrupted()) throw new InterruptedException(); // see consume
                System.err.println("broker away (" + e + "), trying again");
                Thread.sleep(delay);
            }
        }
    }

    static Answer must(Answer answer) {
        if (answer.status < 400) return answer;
        throw new IllegalStateException("refused: " + new String(answer.body, UTF_8));
    }

    static void produce(String topic, int count) throws InterruptedException {
        for (int i = 1; i <= count; i++) {
            var payload = "java " + i;
            var target = "/v1/topics/" + topic + "/messages?wait=5s&key=" + URLEncoder.encode("user-" + i % 4, UTF_8);
            var at = must(call("POST", target, payload.getBytes(UTF_8)));
            System.out.println(new String(at.body, UTF_8).replaceAll("\\D+(\\d+)\\D+(\\d+)\\D+", "$1:$2 ") + payload);
        }
    }

    static void consume(String topic, String group) throws IOException {
        var member = "java-" + ProcessHandle.current().pid();
        var path = "/v1/topics/" + topic + "/groups/" + group;
        var consumer = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> { // SIGTERM
            consumer.interrupt();
            try {
                consumer.join();
            } catch (InterruptedException e) {
                // the JVM ends anyway
            }
        }));
        try {
            consumeUntilInterrupted(path, path + "/poll?wait=5s&member=" + member);
        } catch (InterruptedException e) { // what is not acked goes to the others at once
            once("DELETE", path + "/members/" + member, new byte[0]);
        }
    }

    static void consumeUntilInterrupted(String path, String poll) throws InterruptedException, IOException {
        must(call("PUT", path, new byte[0])); // fine when it exists
        while (true) {
            var batch = call("POST", poll, new byte[0]);
            if (batch.status == 404) { // a restarted broker knows only the groups in its settings
                must(call("PUT", path, new byte[0]));
                continue;
            }
            must(batch);
            print(new DataInputStream(new ByteArrayInputStream(batch.body)));
            if (batch.body.length > 0) { // the work is done: say so
                var ack = call("POST", path + "/ack?receipt=" + batch.headers.get("Podmq-Receipt"), new byte[0]);
                if (ack.status == 409) System.err.println("receipt is stale, going on"); // handed out again since, or by a broker that is gone
            }
        }
    }

    static void print(DataInputStream in) throws IOException {
        while (in.available() > 0) {
            int partition = in.readInt();
            long offset = in.readLong();
            in.skipNBytes(4 + 8); // attempt, published
            in.skipNBytes(in.readUnsignedShort()); // receipt, in queue groups
            int left = in.readInt() - 4, key = in.readUnsignedShort(), attributes = in.readUnsignedShort();
            if (key == 0xFFFF) key = 0; // no key
            in.skipNBytes(key + attributes);
            System.out.print(partition + ":" + offset + " ");
            System.out.write(in.readNBytes(left - key - attributes));
            System.out.println();
            System.out.flush();
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length >= 2 && args[0].equals("produce")) produce(args[1], args.length > 2 ? Integer.parseInt(args[2]) : 10);
        else if (args.length == 3 && args[0].equals("consume")) consume(args[1], args[2]);
        else throw new IllegalArgumentException("usage: PodMQ.java produce TOPIC [N] | consume TOPIC GROUP");
    }
}
