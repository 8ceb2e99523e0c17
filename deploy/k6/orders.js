// Buyers for k6: each iteration is a buyer of its own who orders, and then pays, cancels, or leaves it. docs/load.md
// says how to run it, on several machines too, and how to judge what was sold.
import { check, sleep } from 'k6';
import { hmac } from 'k6/crypto';
import { b64encode } from 'k6/encoding';
import exec from 'k6/execution';
import http from 'k6/http';
import { Counter } from 'k6/metrics';

const env = (name, otherwise) => __ENV[name] || otherwise;
const TARGET = env('TARGET', 'http://localhost:8080'); // a shop, or a load balancer in front of several
const SKUS = env('SKU', 'k6').split(','); // an order takes one of them at random
const STOCK = +env('STOCK', 100); // units of each to put up for sale; 0: they are for sale already
const UNITS = +env('UNITS', 1); // in an order
const PAY = +env('PAY', 0); // share of the orders that are paid
const CANCEL = +env('CANCEL', 0); // share that is cancelled
const ORDERS = +env('ORDERS', 1000); // in all, as fast as VUS buyers at a time can
const VUS = +env('VUS', 100);
const RATE = +env('RATE', 0); // instead of ORDERS: so many are due per second, however slow the shop is
const DURATION = env('DURATION', '10s'); // of that
const TRIES = 10; // of a request

// A shop wants tokens: with its secret they are minted here, and the operator's listener and token put SKUs up for sale. From
// the environment, not by -e, as all users of a machine can see command lines. In a teaching shop, cmd/lab, buyers name
// themselves and may choose how it sells.
const STRATEGY = env('STRATEGY', ''); // a name of docs/strategies.md
const THINK = env('THINK', ''); // the shop's pause between reading stock and writing it, such as 2ms
const SECRET = env('SHOP_TOKEN_SECRET', '');
const OPERATOR = env('OPERATOR', TARGET);
const OPERATOR_TOKEN = env('SHOP_OPERATOR_TOKEN', '');

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
const unanswered = new Counter('unanswered'); // still not answered after all tries
const paid = new Counter('paid');
const cancelled = new Counter('cancelled');
const retries = new Counter('retries');

// A refusal is an answer, not a failed request.
http.setResponseCallback(http.expectedStatuses(200, 201, 409));

// Every instance runs setup: the first puts the SKUs up for sale, and the others find them there.
export function setup() {
  for (const sku of STOCK ? SKUS : []) {
    const body = JSON.stringify({ sku, units: STOCK, price: { minor: 1000, currency: 'EUR' } });
    const r = http.post(`${OPERATOR}/v1/skus`, body, { headers: headersOf(OPERATOR_TOKEN) });
    if (r.status !== 201 && problemOf(r).type !== '/problems/sku-exists') {
      exec.test.abort(`cannot put ${sku} up for sale: ${r.status} ${r.body || r.error}`);
    }
  }
  // A run's own, so that keys and buyers differ from those of every other instance and run.
  return Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
}

export default function (run) {
  const buyer = `k6-${run}-${exec.scenario.iterationInTest}`;
  const who = SECRET ? headersOf(mint(buyer)) : Object.assign(headersOf(''), { 'Shop-Buyer': buyer });
  const how = Object.assign({ 'Idempotency-Key': buyer }, who);
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
    if (send(`/v1/orders/${id}/pay`, 'pay', null, who).status === 200) paid.add(1);
  } else if (share < PAY + CANCEL) {
    if (send(`/v1/orders/${id}/cancel`, 'cancel', null, who).status === 200) cancelled.add(1);
  }
}

// send repeats the same request, with the same key, while the shop is busy or the answer is lost: nothing is done twice.
function send(path, name, body, headers) {
  for (let tries = 1; ; tries++) {
    const r = http.post(TARGET + path, body, { headers, tags: { name } });
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

function headersOf(token) {
  const headers = { 'Content-Type': 'application/json' };
  if (token) headers.Authorization = `Bearer ${token}`;
  return headers;
}

// mint returns a buyer's token, as `shop token` does.
function mint(buyer) {
  const now = Math.floor(Date.now() / 1000);
  const part = (claims) => b64encode(JSON.stringify(claims), 'rawurl');
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ sub: buyer, aud: 'shop:buyer', nbf: now, exp: now + 3600 })}`;
  return `${signed}.${hmac('sha256', SECRET, signed, 'base64rawurl')}`;
}
