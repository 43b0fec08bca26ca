#!/usr/bin/env node
// A producer and a consumer for PodMQ, with nothing but Node's own modules.
//
//     podmq.mjs produce TOPIC [N]
//     podmq.mjs consume TOPIC GROUP
import http from 'node:http';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';

const socketPath = process.env.PODMQ_SOCKET || '/run/podmq/podmq.sock';
const agent = new http.Agent({ keepAlive: true });
const stop = new AbortController();

// One request, one answer.
function once(method, path, { query = {}, body = '', signal } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({
      socketPath, agent, method, signal,
      path: `${path}?${new URLSearchParams(query)}`,
      headers: { 'Content-Length': Buffer.byteLength(body) },
      timeout: 30_000, // longer than any wait below
    }, async (answer) => {
      try {
        const parts = [];
        for await (const part of answer) parts.push(part);
        const text = Buffer.concat(parts).toString();
        resolve({ status: answer.statusCode, headers: answer.headers, json: text ? JSON.parse(text) : {} });
      } catch (error) {
        reject(error);
      }
    });
    request.on('timeout', () => request.destroy(new Error('no answer')));
    request.on('error', reject);
    request.end(body);
  });
}

// It does not give up: what the broker cannot take now (429, 503) is tried again
// when it says, and a broker that is away is waited for. A publish repeated so
// may arrive twice.
async function call(method, path, options) {
  for (let delay = 100; ; delay = Math.min(delay * 2, 5000)) {
    stop.signal.throwIfAborted();
    try {
      const answer = await once(method, path, { signal: stop.signal, ...options });
      if (answer.status !== 429 && answer.status !== 503) return answer;
      await sleep(1000 * Number(answer.headers['retry-after'] ?? 1), null, { signal: stop.signal });
      delay = 100;
    } catch (error) {
      stop.signal.throwIfAborted();
      console.error(`broker away (${error.code ?? error.message}), trying again`);
      await sleep(delay, null, { signal: stop.signal });
    }
  }
}

function must(answer) {
  if (answer.status >= 400) throw new Error(`refused: ${answer.json.detail}`);
  return answer.json;
}

async function produce(topic, count) {
  for (let i = 1; i <= count; i++) {
    const body = `node ${i}`;
    const at = must(await call('POST', `/v1/topics/${topic}/messages`, { query: { key: `user-${i % 4}`, wait: '5s' }, body }));
    console.log(`${at.partition}:${at.offset} ${body}`);
  }
}

async function consume(topic, group) {
  const member = `node-${process.pid}`;
  const path = `/v1/topics/${topic}/groups/${group}`;
  process.on('SIGTERM', () => stop.abort());
  try {
    must(await call('PUT', path)); // fine when it exists
    for (;;) {
      const answer = await call('POST', `${path}/poll`, { query: { member, wait: '5s' } });
      if (answer.status === 404) { // a restarted broker knows only the groups in its settings
        must(await call('PUT', path));
        continue;
      }
      const batch = must(answer);
      for (const m of batch.messages) {
        const payload = Buffer.from(m.payload_base64 ?? m.payload, 'payload_base64' in m ? 'base64' : 'utf8');
        process.stdout.write(Buffer.concat([Buffer.from(`${m.partition}:${m.offset} `), payload, Buffer.from('\n')]));
      }
      if (batch.messages.length > 0) { // the work is done: say so
        const { status } = await call('POST', `${path}/ack`, { query: { receipt: batch.receipt } });
        if (status === 409) console.error('receipt is stale, going on'); // handed out again since, or by a broker that is gone
      }
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally { // what is not acked goes to the others at once
    await once('DELETE', `${path}/members/${member}`).catch(() => {});
  }
}

const [verb, topic, last] = process.argv.slice(2);
if (verb === 'produce' && topic) await produce(topic, Number(last ?? 10));
else if (verb === 'consume' && topic && last) await consume(topic, last);
else throw new Error('usage: podmq.mjs produce TOPIC [N] | consume TOPIC GROUP');
agent.destroy();
