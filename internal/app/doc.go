// Package app builds a running shop from its settings.
//
// It is the one place where everything is wired: database, Redis, lockers, the
// order service, the HTTP server. Each piece is handed what it needs and nothing
// else knows how the others are made.
//
//	e, err := app.StartEmbedded(dir)   // or real servers
//	settings := app.Default()
//	settings.Listen, settings.SQLite, settings.Redis = "127.0.0.1:0", e.SQLite(), e.Redis()
//	settings.TokenSecret, err = auth.NewSecret(text) // or settings.Lab = true
//	shop, err := app.Start(ctx, settings)
//	...
//	err = shop.Shutdown(ctx)
//	err = e.Close()
//
// Several shops in one process are as separate as in several: each has its own
// connections, lockers and server.
//
// What is promised:
//
//   - Start returns a shop that answers, or an error that names the server which
//     did not and what to check, and leaves nothing open.
//   - Settings that ask for TLS get it: a database or Redis that speaks plaintext, or
//     whose certificate is not to be trusted, is refused by Start at once.
//   - Shutdown lets readiness fail before it refuses connections, finishes the
//     orders in flight, and then closes the operator's API, lockers, Redis and
//     database, in this order.
//   - Who buys is known by a token, except in teaching mode. The operator's API is
//     on a listener of its own, there only if it is asked for, and wants another.
//   - Of all instances, one expires the orders that were not paid in time. When it
//     shuts down, another goes on at once; when it is killed, within the lock's
//     TTL and a second. So does the nightly reconciliation, which audits all SKUs,
//     logs what differs and changes nothing. It runs once a day: a handover does
//     not repeat it, nor leave a night out, and neither does a Redis that forgets.
//     One that fails is tried again by another instance at once, and by the same one
//     an hour later.
//   - An instance on which a job fails, as one that has lost its own database, leaves
//     the job to another at once, and stands by again when it would have tried again,
//     after a second at least. One that is alone goes on trying.
//   - One deletes the idempotency keys that are older than Settings.KeepKeys, at
//     most ten minutes later, and says in the log how many.
//   - A buyer's requests are counted over all instances. Redis has a quarter of a
//     second for that; when it cannot count, RateLimitFailsClosed decides.
//   - Each job says in the log and in the metrics what it did.
//   - Each line that is logged for a request has its id.
//   - Teaching mode does not start on settings that look like production, and
//     the lab's known password is refused outside it.
package app
