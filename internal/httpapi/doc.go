// Package httpapi is the shop's HTTP API: routes, JSON, limits, and one table that maps errors to answers. New is the
// buyers' API, NewOperator the operator's, for a listener that buyers cannot reach. The contract is openapi.yaml, which also
// says how strictly bodies and queries are read: the tests check every answer against it.
//
// A request passes serve and admit, in serve.go, and its handler, which decodes, calls the service and returns status,
// body and error; rules live in the service. An error without a row in the table is a 500 whose cause is logged and not in
// the answer.
//
// # Authentication
//
// With Config.Buyers, a request below /v1/orders shows a token in its Authorization header (RFC 6750). Without a good
// one it is a 401 that reads nothing else of the request. Config.Identify replaces the token. Every request to the
// operator's part but GET /healthz shows the operator's token, or is a 401.
//
// # Idempotency-Key
//
// As draft-ietf-httpapi-idempotency-key-header has it: 1 to 255 characters of printable ASCII. POST /v1/orders and a
// restock want one; pay and cancel take one. A repeat has the status, the Location and, byte for byte, the body of the
// first answer, on every instance and whatever became of the order meanwhile, and says Idempotent-Replayed: true. The
// same key with another request is a 422; while the first still runs, a repeat is a 409 with Retry-After. A refusal is
// not replayed: its key is free. Keys belong to a buyer, those of restocks to a SKU.
//
// # Limits
//
// Config.Limiter counts a buyer's changes: POSTs below /v1/orders, whatever else is wrong with them. It also bounds the
// requests of one buyer that run or wait, before Config.MaxInFlight bounds the requests of all below /v1/: one buyer
// cannot use up what is there for all. The reads of a route have an eighth of MaxInFlight, and run a few at a time: lists do
// not keep out reads of one order. Every 429 and 503 carries Retry-After, in seconds.
package httpapi
