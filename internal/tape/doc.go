// Package tape records what one request of a shop in teaching mode does, step by
// step and command by command, and can stop the request ahead of one of them. With
// that, two requests can be made to meet at the same point every time.
//
//	tapes := tape.NewShelf()
//	client.AddHook(tapes.Redis(scriptName))           // its Redis commands
//	store.Through(tapes.Database(sql.OpenDB))         // its SQL, COMMIT included
//	locker := lock.New(b, lock.Options{Observer: tapes.Lock(observer)})
//
//	ctx, t, err := tapes.Record(ctx, tape.Request{Name: "a", Stop: "sql:COMMIT", SKUs: skus})
//	...                                               // the request
//	t.End()
//
// and from elsewhere
//
//	seen, err := tapes.Look(ctx, "a", 0)              // waits for news
//	tapes.Resume("a")
//
// What belongs to which request is known from its context. Commands that outlive
// that, such as those which renew a lease or give it back, are known by the name of
// the SKU in their arguments.
//
// What is promised:
//
//   - A stop comes ahead of the command: nothing of it has left the process.
//   - It ends by Resume, with the request's own context, or after Longest, which is
//     recorded.
//   - While nothing was ever recorded, a command costs one atomic read. A request
//     without a tape is not held up, but for those that share a command or a
//     lane with one that is stopped, or its SKU with a running one.
package tape
