// Buyers for k6: each iteration orders as the next of the buyers, and then pays, cancels, or leaves the order. docs/load.md
// says how to run it, also on several machines, and how to judge what was sold.
import { check, sleep } from 'k6';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import http from 'k6/http';
import { Counter } from 'k6/metrics';

const env = (name, otherwise) => __ENV[name] || otherwise;
const TARGET = env('TARGET', 'http://localhost:8080'); // a shop, or a load balancer in front of several
const SKUS = env('SKU', 'k6').split(','); // an order takes one of them at random
const UNITS = +env('UNITS', 1); // in an order
const PAY = +env('PAY', 0); // share of the orders that are paid
const PROVIDER = env('PROVIDER', ''); // the operator's listener, for the payment service; without it, buyers pay by their own word
const PAYMENTS = env('SHOP_PAYMENTS_TOKEN', ''); // the payment service's token
const CANCEL = +env('CANCEL', 0); // share of the orders that are cancelled
const ORDERS = +env('ORDERS', 1000); // in all, by VUS buyers at a time
const VUS = +env('VUS', 100);
const RATE = +env('RATE', 0); // instead of ORDERS: orders per second, however slow the shop is
const DURATION = env('DURATION', '10s'); // of RATE
const TRIES = 10; // of a request

// A line of the file TOKENS is a buyer's token, as `shop token` makes it. Without the file, the shop has to be a teaching shop,
// cmd/lab, in which each order has a buyer of its own, who may choose how it is sold.
const TOKENS = env('TOKENS', ''); // an absolute path
const STRATEGY = env('STRATEGY', ''); // a name of docs/strategies.md
const THINK = env('THINK', ''); // the shop's pause between reading stock and writing it, such as 2ms
const tokens = TOKENS && new SharedArray('tokens', () => open(TOKENS).trim().split('\n'));

// k6 divides both kinds of load among the instances of --execution-segment.
const scenario = RATE
  ? { executor: 'constant-arrival-rate', rate: RATE, duration: DURATION, preAllocatedVUs: VUS }
  : { executor: 'shared-iterations', iterations: ORDERS, vus: VUS, maxDuration: '10m' };

export const options = {
  scenarios: { buyers: scenario },
  thresholds: {
    checks: ['rate==1'], // every answer was one that the API foresees
    unanswered: ['count==0'], // every buyer knows whether there is an order
    dropped_iterations: ['count==0'], // with RATE: every order that was due was sent
  },
};

const placed = new Counter('orders');
const refused = new Counter('refused'); // sold out
const unanswered = new Counter('unanswered'); // without an answer after all tries
const paid = new Counter('paid');
const cancelled = new Counter('cancelled');
const retries = new Counter('retries');

// A refusal is an answer, not a failed request.
http.setResponseCallback(http.expectedStatuses(200, 201, 409));

// Every instance of --execution-segment runs setup.
export function setup() {
  for (const sku of SKUS) {
    const r = http.get(`${TARGET}/v1/skus/${sku}`);
    if (r.status !== 200) exec.test.abort(`no SKU ${sku} at ${TARGET}: ${r.status} ${r.body || r.error}`);
  }
  // Random, so that keys and buyers differ between all instances and runs.
  return Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
}

export default function (run) {
  const number = exec.scenario.iterationInTest; // counted over all instances
  const key = `k6-${run}-${number}`;
  const who = { 'Content-Type': 'application/json' };
  if (tokens) who.Authorization = `Bearer ${tokens[number % tokens.length]}`;
  else who['Shop-Buyer'] = key;
  const how = Object.assign({ 'Idempotency-Key': key }, who);
  if (STRATEGY) how['Shop-Strategy'] = STRATEGY;
  if (THINK) how['Shop-Think'] = THINK;

  const lines = [{ sku: SKUS[Math.floor(Math.random() * SKUS.length)], quantity: UNITS }];
  const order = send('/v1/orders', 'order', JSON.stringify({ lines }), how);
  if (problemOf(order).type === '/problems/sold-out') refused.add(1);
  if (order.status !== 201) return;
  placed.add(1);
  const id = order.json('id');
  const share = Math.random();
  if (share < PAY) {
    const path = `/v1/orders/${id}/pay`;
    const payment = JSON.stringify({ payment_id: `k6-${id}`, amount: order.json('total') });
    const service = { 'Content-Type': 'application/json', Authorization: `Bearer ${PAYMENTS}` };
    const answer = PROVIDER ? send(path, 'pay', payment, service, PROVIDER) : send(path, 'pay', null, who);
    if (answer.status === 200) paid.add(1);
  } else if (share < PAY + CANCEL) {
    if (send(`/v1/orders/${id}/cancel`, 'cancel', null, who).status === 200) cancelled.add(1);
  }
}

// send repeats the same request, with the same key, while the shop is busy or the answer is lost: nothing is done twice.
function send(path, name, body, headers, target = TARGET) {
  for (let tries = 1; ; tries++) {
    const r = http.post(target + path, body, { headers, tags: { name } });
    const again = r.status === 0 || problemOf(r).retry_safe;
    check(r, { 'the API foresees the answer': () => [200, 201, 409].includes(r.status) || (again && r.status !== 500) });
    if (!again) return r;
    if (tries === TRIES) {
      unanswered.add(1);
      return r;
    }
    retries.add(1);
    const pause = Math.min(+r.headers['Retry-After'] || 0.05 * 2 ** tries, 5);
    sleep(pause * (1 + Math.random() / 2));
  }
}

function problemOf(r) {
  return /problem/.test(r.headers['Content-Type']) ? r.json() : {};
}
