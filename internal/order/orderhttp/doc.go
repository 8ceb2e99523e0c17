// Package orderhttp is the shop's HTTP API: routes, JSON shapes, and one table
// that turns errors into answers.
//
//	POST /v1/orders         place an order          GET /v1/skus        levels and prices
//	GET  /v1/orders/{id}    the buyer's own         GET /v1/skus/{sku}  one of them
//	GET  /v1/audit          do the accounts agree?  /healthz /readyz    for load balancers
//
// and in teaching mode GET /v1/strategies and POST /v1/skus, where a SKU without a
// price costs 10.00 EUR.
//
// A handler decodes, calls the service, encodes; rules live in the service. The
// JSON types are this package's own and are mapped in plain sight.
//
// # Who buys
//
// The header Shop-Buyer names the buyer; absent means "guest". It is believed:
// tokens come with a later version, and until then the API belongs behind
// something that knows its users.
//
// # Bodies
//
// JSON is read strictly: one object, no unknown or repeated field, no null, no
// trailing data, whole numbers where units are counted, at most 64 KiB.
//
// # Errors
//
// Every error is an RFC 9457 problem (application/problem+json). Its type is
// stable and made for programs, its detail is made for people. retry_safe tells
// that the same request, with the same Idempotency-Key, may be sent again as it
// is: it can succeed and never buys twice. Bad input never is a 5xx. What no row
// of the table knows is a 500 whose cause is logged and not told.
package orderhttp
