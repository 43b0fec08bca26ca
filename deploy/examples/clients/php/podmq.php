#!/usr/bin/env php
<?php
// A producer and a consumer for PodMQ, with nothing but what PHP 8 brings along.
//
//     podmq.php produce TOPIC [N]
//     podmq.php consume TOPIC GROUP
declare(strict_types=1);

$socket = getenv('PODMQ_SOCKET') ?: '/run/podmq/podmq.sock';
$stopped = false;

// One request on a connection of its own: [status, headers, body], or null when
// the broker is away. A signal ends the wait for the answer.
function once(string $method, string $path, array $query = [], string $body = ''): ?array
{
    global $socket;
    $connection = @stream_socket_client("unix://$socket", $code, $error, 5);
    if ($connection === false) {
        return null;
    }
    $target = $query ? $path . '?' . http_build_query($query) : $path;
    $request = "$method $target HTTP/1.1\r\nHost: podmq\r\nConnection: close\r\nContent-Length: " . strlen($body) . "\r\n\r\n$body";
    $ready = [$connection];
    $none = [];
    if (@fwrite($connection, $request) !== strlen($request) || !@stream_select($ready, $none, $none, 30)) {
        return null;
    }
    $answer = (string) stream_get_contents($connection);
    [$head, $content] = explode("\r\n\r\n", $answer, 2) + [1 => ''];
    $lines = explode("\r\n", $head);
    if (!preg_match('~^HTTP/1\.1 (\d+)~', $lines[0], $found)) {
        return null;
    }
    $headers = [];
    foreach (array_slice($lines, 1) as $line) {
        [$name, $value] = explode(':', $line, 2);
        $headers[strtolower($name)] = trim($value);
    }
    return strlen($content) < (int) ($headers['content-length'] ?? 0) ? null : [(int) $found[1], $headers, $content];
}

// Makes one call: [status, JSON]. It does not give up: what the broker cannot take
// now (429, 503) is tried again when it says, and a broker that is away is waited
// for. A publish repeated so may arrive twice.
function call(string $method, string $path, array $query = [], string $body = ''): array
{
    global $stopped;
    for ($delay = 100_000; !$stopped; ) {
        $answer = once($method, $path, $query, $body);
        if ($answer === null) {
            if (!$stopped) {
                fwrite(STDERR, "broker away, trying again\n");
                usleep($delay);
                $delay = min($delay * 2, 5_000_000);
            }
            continue;
        }
        [$status, $headers, $content] = $answer;
        if ($status !== 429 && $status !== 503) {
            return [$status, $content === '' ? [] : json_decode($content, true, 512, JSON_THROW_ON_ERROR)];
        }
        sleep((int) ($headers['retry-after'] ?? 1));
    }
    return [0, ['messages' => []]];
}

function must(array $answer): array
{
    if ($answer[0] >= 400) {
        fwrite(STDERR, 'refused: ' . ($answer[1]['detail'] ?? '') . "\n");
        exit(1);
    }
    return $answer[1];
}

function produce(string $topic, int $count): void
{
    for ($i = 1; $i <= $count; $i++) {
        $payload = "php $i";
        $at = must(call('POST', "/v1/topics/$topic/messages", ['key' => 'user-' . $i % 4, 'wait' => '5s'], $payload));
        echo "{$at['partition']}:{$at['offset']} $payload\n";
    }
}

function consume(string $topic, string $group): void
{
    global $stopped;
    $member = 'php-' . getmypid();
    $path = "/v1/topics/$topic/groups/$group";
    must(call('PUT', $path)); // fine when it exists
    if (function_exists('pcntl_signal')) { // without it, what is in hand comes back at the end of its lease
        pcntl_async_signals(true);
        pcntl_signal(SIGTERM, function () use (&$stopped) { $stopped = true; });
    }
    while (!$stopped) {
        [$status, $batch] = call('POST', "$path/poll", ['member' => $member, 'wait' => '5s']);
        if ($status === 404) { // a restarted broker knows only the groups in its settings
            must(call('PUT', $path));
            continue;
        }
        must([$status, $batch]);
        foreach ($batch['messages'] as $m) {
            $payload = isset($m['payload_base64']) ? base64_decode($m['payload_base64']) : $m['payload'];
            echo "{$m['partition']}:{$m['offset']} $payload\n";
        }
        if ($batch['messages']) { // the work is done: say so
            [$status] = call('POST', "$path/ack", ['receipt' => $batch['receipt']]);
            if ($status === 409) { // handed out again since, or by a broker that is gone
                fwrite(STDERR, "receipt is stale, going on\n");
            }
        }
    }
    once('DELETE', "$path/members/$member"); // what is not acked goes to the others at once
}

[, $verb, $topic, $last] = $argv + [1 => '', 2 => '', 3 => ''];
if ($verb === 'produce' && $topic !== '') {
    produce($topic, (int) ($last ?: 10));
} elseif ($verb === 'consume' && $topic !== '' && $last !== '') {
    consume($topic, $last);
} else {
    fwrite(STDERR, "usage: podmq.php produce TOPIC [N] | consume TOPIC GROUP\n");
    exit(1);
}
