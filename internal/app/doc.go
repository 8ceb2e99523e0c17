// Package app builds a running shop from its settings. No other package creates the components and connects them.
//
//	settings := app.Default()
//	settings.Data, settings.TokenSecret = dir, secret // or MySQL, Redis
//	shop, err := app.Start(ctx, settings, app.Hooks{})
//	...
//	err = shop.Shutdown(ctx)
//
// Several shops in one process are as separate as in several processes: each shop has its own connections, lockers and
// servers. Shops that share a folder or a database must also share a Redis.
//
// The package promises:
//
//   - Start returns a shop that answers. If a server does not answer, Start returns an error that names the server and
//     what to check, and leaves nothing open.
//   - If the settings require TLS, Start refuses a database or Redis that speaks plaintext or has an
//     untrusted certificate.
//   - A second shop on a folder is refused, unless both shops have their locks in Redis.
//   - Shutdown lets readiness fail before it refuses connections, finishes the orders in flight, and then closes the
//     operator's API and every component, the last one opened first.
//   - A token identifies the buyer, unless a hook does. The operator's API is open only if it has an address; it has a
//     listener and a token of its own.
//   - One of all instances expires the orders that were not paid in time. If that instance shuts down, another takes
//     over within two seconds; if it is killed, within the lock's TTL and a second.
//   - One instance runs the nightly reconciliation, which audits all SKUs, logs differences and changes nothing. It
//     runs once a day, even if Redis loses its data or instances change. If no instance runs at that time, it runs
//     later. If a run fails, or its instance ends, it is repeated in the next hour.
//   - If a job fails on an instance, the instance leaves the job to others for twice the usual time between runs.
//   - One instance deletes the idempotency keys that are older than Settings.KeepKeys, at most ten minutes later.
//   - Each job reports its work in the log and in the metrics. It logs a repeated error ever less often, with a count.
//   - Each line of the log about a request has the id of the request.
//   - Start refuses the passwords that docker-compose.yml publishes, unless a hook identifies the buyers.
package app
