// Package order takes orders without selling a unit twice.
//
// An order is pending when it is placed and holds its units. Placing one goes
//
//	validate -> seen this idempotency key? -> take the lease of each SKU ->
//	one transaction {idempotency key, buyer, units, limits, order, movements} -> commit -> release
//
// and the order of these steps is the point. The lease is released after the
// commit: released before it, the next buyer reads stock that is about to
// change. The commit is not started with too little of any lease left. The key
// is looked at before the fence, or a buyer's own committed order would look
// like somebody else's newer write.
//
// An order has several lines, all or nothing. Lines of the same SKU count as one,
// at the place of the first. Leases, and the rows of the stock, are taken in the
// order of the SKUs' names, so that two orders never wait for each other. The
// total is computed here, from the prices of the moment; all of them must be in
// one currency.
//
// A buyer has at most Config.MaxOpen pending orders and, of each SKU, at most its
// LimitPerBuyer units in orders that are pending or paid. Both are counted in the
// order's transaction, while the buyer's row and the SKU's row are locked, in this
// sequence. An order whose time is over counts until a sweeper has found it: until
// then it holds its units. How an order ends asks for no lock of the buyer's, and
// makes room.
//
// An order's times go by the database's clock as it was when the stock was read,
// in the same query. If that clock steps, the orders that are being placed at
// that moment are off by the step; the next ones follow it. In a lane the stock may
// have been read up to a second before, and the time since then is counted on. An order
// from a head start (below) has the time at which that began, up to a second ago.
//
// An order ends once: paid, and its units are sold; cancelled by its buyer, or
// expired because it was not paid in time, and its units are available again.
//
//	one transaction {order's row, idempotency key if there is one, units, movements}
//
// needs no lease: the row is changed where it says pending and, by the
// database's clock, is in time (or, to expire it, is not). Of all who would end
// an order, that statement lets one, and the others are told what it came to.
//
// In a lane, buyers of one SKU on one instance share what an order costs. Each lane
// has a leader, who takes the lease, sells to all who stand there by then, 256 at
// most, in the order of their arrival and in one transaction of the same kind,
// tells each what became of its own order, and gives the lease back:
//
//	lease -> read stock and keys -> who gets what -> one transaction {keys, buyers,
//	one update of the units, limits, orders, movements} -> commit -> answers -> release
//
// In a row of batches the reading falls away. For a second, a batch whose wishes can
// all be met by what was read before sells by that, and its transaction compares: the
// update asks for the units, and for the price and the limit as they were; the keys
// are primary keys. Where something turns out to be different, the batch reads after
// all, and nobody is refused by what was true before.
//
// Such a batch may have a head start: while the lane waits for its lease, the
// transaction is begun, and the orders of who stands there are written. Nobody else
// waits for those rows. Keys, units and movements come under the lease, as ever. Where
// a buyer leaves the lane, or something turns out to be different, it is rolled back,
// and was in vain.
//
// Nobody waits for a batch to fill: a lone buyer is served at once, and the next
// batch is who came while the last one was committed. One buyer's bad luck is no
// other's: a replay or a conflict is answered beside the batch, who is over a limit
// is left out of it, one whose ctx ends in the line leaves. Where a row of one buyer
// is locked elsewhere, all of the batch go on one by one. Orders of several SKUs
// stand in no lane; they wait for the same leases, in the same line.
//
// What a lane finds sold out is remembered, for Config.SoldOutFor at most: until an
// instance hears that units came back, it refuses all who want the SKU, also in a
// cart, without a lock, a read or a line. Keys that have bought it go the long way.
//
// How buyers are kept apart is a Strategy, a row of one table: which lock is
// held, and in which stock.Way the units are taken. Some rows are wrong on
// purpose; only a shop in teaching mode lets a request choose. A row whose lock a
// shop does not have is refused, with the reason. Fences of two stores cannot be
// compared: a SKU stays with one.
//
// What is promised:
//
//   - Never oversold, by every strategy that Promises it, however many
//     instances there are and whatever becomes of the lock: the statement that
//     takes the units compares and subtracts in one step.
//   - A buyer's idempotency key makes at most one order. The same request again
//     gets the same order as it was answered first, whatever has become of it or
//     of the price; another request with the same key is refused. That holds for
//     as long as the key is kept. Once it is purged, it may be used again and
//     makes a new order; until then it counts, however old it is.
//   - A payment and a cancellation may have a key, under the same rules and beside
//     the keys of orders: none is good for two requests. A refusal, of an order or
//     of its end, leaves its key free.
//   - No buyer gets over a limit, by any strategy, however many instances there are
//     and however many orders come at once. A replay is no new order: it is
//     answered also at the limit.
//   - A refused order changes no row.
//   - Units that come back can be bought at once on the instance that gave them
//     back, on the others when the news has got there, and where it is lost within
//     Config.SoldOutFor. For so long, a buyer who has just bought them elsewhere
//     and asks again may be told that they are sold out, and gets the replay after it.
//   - Pay against expiry at the same instant ends as exactly one of the two. Each
//     unit is sold once or given back once.
//   - A late payment of an expired order is refused, also before a sweeper has
//     found it.
//   - A COMMIT whose answer is lost is asked for, on another connection: an order
//     that was placed is answered as placed, one that was not is placed now. So
//     are a payment and a cancellation. Where that is not answered either, it is
//     ErrUnknownOutcome, or ErrUnsettled for an order that was to end: the buyer
//     asks again, with the same key, and gets the one outcome there is.
//
// The package knows neither HTTP nor a database: orderhttp and orderstore do.
package order
