// Package app builds a running shop from its settings.
//
// It is the one place where everything is wired: database, Redis, lockers, the
// order service, the HTTP server. Each piece is handed what it needs and nothing
// else knows how the others are made.
//
//	e, err := app.StartEmbedded(dir)   // or real servers
//	settings := app.Default()
//	settings.Listen, settings.SQLite, settings.Redis = "127.0.0.1:0", e.SQLite(), e.Redis()
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
//   - Shutdown lets readiness fail before it refuses connections, finishes the
//     orders in flight, and then closes lockers, Redis and database, in this order.
//   - Teaching mode does not start on settings that look like production, and
//     the lab's known password is refused outside it.
package app
