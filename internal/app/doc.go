// Package app builds a running shop from its settings. It alone creates the components and gives each what it needs.
//
//	settings := app.Default()
//	settings.Data, settings.TokenSecret = dir, secret // or MySQL, Redis
//	shop, err := app.Start(ctx, settings, app.Hooks{})
//	...
//	err = shop.Shutdown(ctx)
//
// Several shops in one process are as separate as in several processes: each has its own connections, lockers and
// servers. Shops that share a folder or a database also have to share a Redis.
//
// What is promised:
//
//   - Start returns a shop that answers. Otherwise it returns an error that names the server which did not and what to
//     check, and leaves nothing open.
//   - Settings that require TLS get it: Start refuses a database or Redis that speaks plaintext, or whose certificate
//     is not to be trusted.
//   - A second shop on a folder is refused if the locks of one of the two are in its process.
//   - Shutdown lets readiness fail before it refuses connections, finishes the orders in flight, and then closes the
//     operator's API and every component, the last one opened first.
//   - Buyers are known by a token, unless a hook identifies them. The operator's API has a listener of its own, only if it
//     has an address, and needs another token.
//   - Of all instances, one expires the orders that were not paid in time. When it shuts down, another goes on within
//     two seconds; when it is killed, within the lock's TTL and a second.
//   - One instance runs the nightly reconciliation, which audits all SKUs, logs differences and changes nothing. It runs once a
//     day, also if Redis loses its data or instances change; if no instance ran at that time, it runs later. A run that
//     failed, or whose instance ended, is repeated in the next hour.
//   - An instance on which a job fails leaves the job to others, for twice the usual time between runs.
//   - One instance deletes the idempotency keys that are older than Settings.KeepKeys, at most ten minutes later.
//   - Each job reports in the log and in the metrics what it did. A repeated error is logged less and less often,
//     with a count.
//   - Each line of the log about a request has its id.
//   - The passwords that docker-compose.yml publishes are refused, unless a hook identifies the buyers.
package app
