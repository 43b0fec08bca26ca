// Works off the orders, group "fulfilment": takes a batch, does it, and
// acknowledges it with the next poll. What it has not acknowledged when it dies is
// handed out again, so the same order may come twice: its partition and offset
// tell.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const socketPath = process.env.PODMQ_SOCKET;
const group = '/v1/topics/orders/groups/fulfilment';
const member = `worker-${process.env.HOSTNAME ?? process.pid}`;
const agent = new http.Agent({ keepAlive: true });
const stop = new AbortController();
process.on('SIGTERM', () => stop.abort());

function call(method, path, query, signal) {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, agent, method, signal, path: `${path}?${new URLSearchParams(query)}` }, (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part)).on('error', reject);
      answer.on('end', () => {
        const text = Buffer.concat(parts).toString();
        resolve({ status: answer.statusCode, body: text ? JSON.parse(text) : {} });
      });
    });
    request.on('error', reject).end();
  });
}

function fulfil(message) {
  const order = JSON.parse(message.payload);
  console.log(`fulfilled ${message.partition}:${message.offset} ${order.customer} ${order.item}`);
}

let done; // the receipt of the batch that is done
while (!stop.signal.aborted) {
  try {
    const query = { member, max: 20, wait: '10s', ...(done && { ack: done }) };
    const { status, body } = await call('POST', `${group}/poll`, query, stop.signal);
    done = undefined; // acknowledged, or stale: those come again
    if (status === 409) continue;
    if (status !== 200) throw new Error(body.detail);
    body.messages.forEach(fulfil);
    done = body.receipt;
  } catch (error) {
    if (stop.signal.aborted) break;
    console.error(`no orders: ${error.message}`);
    await sleep(500);
  }
}
// The broker is there until the last app container has ended.
if (done) await call('POST', `${group}/ack`, { receipt: done });
await call('DELETE', `${group}/members/${member}`, {});
agent.destroy();
