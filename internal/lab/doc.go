// Package lab is the teaching shop: a shop in which requests choose how they are sold, with all strategies and wrong
// locks, traces of requests, and a recorder that can stop them. Start wraps these around the parts of
// an app.Shop, which know nothing of it, by app.Hooks.
//
// A request goes between Begin and End; Look and Do watch it and let it take its steps. Which request
// a step or command belongs to is known from its context. Commands that outlive the context, such as the renewal and
// the release of a lease, are known by the name of the SKU in their arguments.
//
// A request that is stepped stops before each step that another request can notice: a statement about
// the stock, a BEGIN or COMMIT, taking or releasing a lock. Taking a lock, however often it asks, is
// one step; of the wrong locks, each command is one. What a batch does for several requests is recorded
// for each, and stops once for each that is stepped.
//
// Promises:
//
//   - A stop comes before the command: nothing of it has left the process.
//   - It ends by a Move, with the context of the step, or after Longest, which is recorded.
//   - A request that has died sends nothing more, and its transaction is rolled back. The requests that shared a batch
//     with it also die, and so do all requests that were recorded in its process and had not ended. Until a later
//     request about its SKU is recorded, no request sends anything about the SKU to Redis or to a table of locks: a
//     renewal of the dead request's lock would count as another request's.
//   - While nothing was ever recorded, a command costs an atomic read, and a statement a copy of its
//     arguments. A request that is not recorded is not held up, except where it shares a command or a
//     batch with a stopped request, or its SKU with a recorded request.
package lab
