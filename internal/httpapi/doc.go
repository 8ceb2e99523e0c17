// Package httpapi is the shop's HTTP API: routes, JSON, limits, and one table that maps errors to
// answers. New returns the buyers' API, and NewOperator the operator's API, for a listener that buyers
// cannot reach. The contract is openapi.yaml, which also says how strictly bodies and queries are read.
// The tests check every answer against the contract.
//
// A request passes serve and admit, in serve.go. Then its handler decodes the request, calls the service, and returns
// status, body and error; the rules are in the service. An error without a row in the table is a 500: the log has its
// cause, and the answer does not.
//
// # Authentication
//
// With Config.Buyers, a request below /v1/orders must show a valid token in its Authorization header (RFC 6750).
// Otherwise the answer is a 401, and nothing else of the request is read. Config.Identify replaces the token. Every
// request to the operator's API except GET /healthz must show the operator's token; otherwise the answer is a 401.
//
// # Idempotency-Key
//
// The header follows draft-ietf-httpapi-idempotency-key-header: 1 to 255 characters of printable ASCII. POST /v1/orders
// and a restock require a key; pay and cancel accept one. A repeat gets the status, the Location and, byte for byte,
// the body of the first answer, with Idempotent-Replayed: true. The repeat may reach any instance, and the order may
// have changed meanwhile. If a key comes with another request, the answer is a 422. If the first request still runs,
// the answer to a repeat is a 409 with Retry-After. A refusal is not replayed: its key is free again. A key belongs to
// a buyer or, for restocks, to a SKU.
//
// # Limits
//
// Config.Limiter counts a buyer's changes: the POST requests below /v1/orders, valid or not. It also
// bounds the requests of one buyer that run or wait. Only then does Config.MaxInFlight bound the
// requests of all buyers below /v1/, so that one buyer cannot use up the room of all. The reads of each
// route have an eighth of MaxInFlight, and run a few at a time, so that lists leave room for reads of
// one order. The operator's API has the same limits, and its reads of each route run one at a time, so
// that audits leave room for orders. Every 429 and 503 has a Retry-After, in seconds.
package httpapi
