// Uses the types that openapi-typescript generates from openapi.yaml. It is only compiled: .ci/openapi.
import type { components, operations } from "./openapi";

type Responses = operations["placeOrder"]["responses"];

export const order: components["schemas"]["NewOrder"] = { lines: [{ sku: "demo-mug", quantity: 2 }] };
export const key: operations["placeOrder"]["parameters"]["header"]["Idempotency-Key"] = "cart-1";

export function payable(placed: Responses[201]["content"]["application/json"]): boolean {
  return placed.status === "pending" && placed.total.minor > 0 && Date.parse(placed.expires_at) > Date.now();
}

export function soldOut(problem: Responses[409]["content"]["application/problem+json"]): boolean {
  return problem.type === "/problems/sold-out" && !problem.retry_safe;
}

// @ts-expect-error not a status
export const status: components["schemas"]["Status"] = "lost";
