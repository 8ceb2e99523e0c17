// Package orderhttp is the shop's HTTP API: routes, JSON shapes, and one table
// that turns errors into answers. New is the buyers' part:
//
//	POST /v1/orders         place an order          GET /v1/skus        levels and prices
//	GET  /v1/orders         the buyer's own         GET /v1/skus/{sku}  one of them
//	GET  /v1/orders/{id}    one of them
//	POST /v1/orders/{id}/pay     its units are sold
//	POST /v1/orders/{id}/cancel  its units are for sale again
//	GET  /healthz, /readyz  for load balancers
//	GET  /openapi.yaml      all of this, for programs
//
// and in teaching mode GET /v1/strategies, GET /v1/audit, GET /v1/tapes/{tape}, POST
// to its /resume, and POST /v1/skus, where a SKU without a price costs 10.00 EUR. NewOperator is the operator's part, for a
// listener that buyers do not reach:
//
//	POST /v1/skus                  put something up for sale
//	PATCH /v1/skus/{sku}           change how many units a buyer may have
//	POST /v1/skus/{sku}/movements  restock it       GET  the same: its ledger, the earliest first
//	GET  /v1/audit                 do the accounts agree?
//	GET  /metrics, /debug/pprof/   how the process does
//	GET  /healthz                  that it lives
//
// A handler decodes, calls the service, encodes; rules live in the service. The
// JSON types are this package's own and are mapped in plain sight.
//
// # Who buys
//
// With Config.Buyers, a request below /v1/orders shows a token in its
// Authorization header (RFC 6750). Without a good one it is a 401 that reads
// nothing else of the request, and the header Shop-Buyer counts for nothing.
//
// Without, for teaching mode and behind something that knows its users, the header
// Shop-Buyer names the buyer; absent means "guest". It is believed.
//
// # What an order took
//
// In teaching mode the answer to POST /v1/orders that places an order, or says that
// it is sold out, has a Shop-Trace: when this request asked for the lock, had it, read
// the stock and how much there was (a lane need not do so each time), wrote, committed
// and gave the lock back (which a lane does after its answers), in microseconds since
// 1970 by the clock of this instance. GET /v1/strategies names the database and Redis
// with their versions.
//
// An order with the header Shop-Tape is recorded under that name, with its Redis
// commands and its SQL, for GET /v1/tapes/{tape}, which waits for news. With Shop-Stop
// it stops once, after a step or before a command, until it is resumed, for 30 s at
// most: so two orders can be made to meet at the same point every time.
//
// # Who operates
//
// Every request to the operator's part but GET /healthz shows the operator's
// token, in the same header, or is a 401. A buyer's token opens nothing there, and
// the operator's nothing of the buyers'.
//
// A restock has an Idempotency-Key: the same again is answered as before, byte for
// byte, marked Idempotent-Replayed, and counts once. Keys are kept for ever.
//
// # Bodies
//
// JSON is read strictly: one object, no unknown or repeated field, no null, no
// trailing data, whole numbers where units are counted, at most 64 KiB.
//
// An order has 1 to 20 lines. Those of one SKU are answered as one, at the place of
// the first; the same order said in other lines is the same request.
//
// # How an order ends
//
// An order is pending until expires_at, then expired; paid or cancelled if its
// buyer asks for that first. Pay and cancel take no body. Asking again for the
// end that it has come to is answered with the order; for another end, it is a
// 409 whose order_status is the one it has.
//
// # Idempotency-Key
//
// As draft-ietf-httpapi-idempotency-key-header has it: 1 to 255 characters of
// printable ASCII, chosen by the client, one per request that is not a repeat.
// POST /v1/orders wants one; pay and cancel take one. A repeat has the status, the
// Location and, byte for byte, the body of the first answer, on every instance and
// whatever became of the order meanwhile (GET shows it as it is), and says
// Idempotent-Replayed: true. The same key with another request is a 422, while the
// first is still running a 409 with Retry-After. What was refused is not replayed:
// its key is free. (Where a SKU is remembered to be sold out, a key that was used for
// something without it is told that, too: 409, not 422.) Keys belong to a buyer, and are kept as long as the shop says,
// 24 hours by default; after that, a repeat is a new request.
//
// The body is not stored but made again from the order, of which nothing but the
// status changes, and that is known from the request. A release of the shop that
// writes orders differently replays them in its own way.
//
// # Limits of a buyer
//
// A buyer may have some pending orders at a time and, of a SKU with a
// limit_per_buyer, some units in orders that are pending or paid. One order too
// many is a 429, whose Retry-After is the time until the first pending order
// expires, at most an hour: nothing but time is in the way. One unit too many is a
// 409, as sold out is: for this buyer, it is. Replays come first.
//
// # The contract
//
// openapi.yaml is written by hand, as what is promised to clients, at both
// listeners: its servers say which has what. Package contract checks every answer
// in the tests against it.
//
// Levels have no ETag: they change with each sale, so that it would seldom match,
// and save the bytes of a short answer while the database is read all the same.
//
// # Queries
//
// Below /v1/ a parameter of the URL that the call does not have, or one that comes
// twice, is a 400, as an unknown field of a body is. Probes, profiles and scrapes
// may bring what they like.
//
// # Lists
//
// A list is answered in pages of limit items, 1 to 100, 50 where nothing is said.
// next_cursor, as it was answered, begins the next one; the last page has none.
// Orders come the latest first, so that those placed meanwhile move no page.
//
// # Limits
//
// Config.Limiter counts what a buyer asks to be changed: POSTs below /v1/orders,
// after the token was verified and, of pay and cancel, before anything else is read.
// Who asks for more gets a 429, whatever else is wrong with the request. Not counted
// is an order that is refused because its SKU is remembered to be sold out: a 409
// that costs nothing, and needs no Redis. Config.MaxInFlight bounds the requests that are worked on or wait, from
// their header on; one more gets a 503. Each request waits in at most one line of
// the lock, so that bounds the lines of this instance, too. Health checks count
// for neither. Every 429 and 503 carries Retry-After, in seconds.
//
// # Readiness
//
// GET /readyz asks Config.Checks, which have two seconds. However many ask it, the
// checks run in one round at a time and one in a second, whose outcome all share. It is
// exempt from the limits above, and needs none.
//
// # Request ids
//
// A request may bring an X-Request-Id along: 1 to 64 letters, digits or any of
// ._:/+=@- . Otherwise it gets one, a UUIDv7. The answer has it in the same header,
// a problem in its request_id, and each line of the log that the request causes. One
// of these lines tells the outcome: changes at level info, reads and refusals at
// debug, what is the shop's own fault as a warning or an error. Buyers, tokens and
// idempotency keys are in none.
//
// # Errors
//
// Every error is an RFC 9457 problem (application/problem+json). Its type is
// stable and made for programs, its detail is made for people. retry_safe tells
// that the same request, with the same Idempotency-Key, may be sent again as it
// is: it can succeed and never buys twice. Bad input never is a 5xx. What no row
// of the table knows is a 500 whose cause is logged and not told.
//
// What is not HTTP (400), or has too large a header (431), net/http refuses in plain
// text before there is a request. It has a 501 for unknown transfer codings and a
// 505 for unknown versions, as RFC 9112 and RFC 9110 ask.
package orderhttp
