package store

import "example.com/shop/internal/stock"

// check looks for one kind of difference. Its query returns the SKU and the order, or NULL, and the values of detail.
type check struct {
	invariant stock.Invariant
	detail    string // a format with one %s for each further column
	by        string // the table and column by whose ranges the query reads: from @from on, before @until
	query     string
}

// keyIsKept narrows a query on orders AS o to the orders whose key no purge can have deleted. The key of an older order
// may be missing, or may belong to another request now. The purge compares the same column.
const keyIsKept = `o.created_at >= (SELECT purged_until FROM idempotency_purge)`

// keyPlaces narrows a query on idempotency_keys AS k and their orders AS o to the keys that placed an order. If a key
// ended an order, its fingerprint is pay: or cancel: and the order's id.
const keyPlaces = `REPLACE(k.fingerprint, o.id, '') NOT IN ('pay:', 'cancel:')`

// orderHasSKU narrows a query on orders AS o to the orders with a line of the SKU.
const orderHasSKU = `(@sku = '' OR EXISTS (SELECT 1 FROM order_lines AS l WHERE l.order_id = o.id AND l.sku = @sku))`

// These narrow a query to a range. The plus keeps SQLite, which has one range of all rows, off the
// index; MySQL ignores it.
const (
	inOrders    = `+o.id >= @from AND +o.id < @until AND ` + orderHasSKU
	inLines     = `+l.order_id >= @from AND +l.order_id < @until AND (@sku = '' OR l.sku = @sku)`
	inKeys      = `+k.buyer >= @from AND +k.buyer < @until`
	inMovements = `+m.sku >= @from AND +m.sku < @until`
	inMoved     = `+m.order_id >= @from AND +m.order_id < @until AND (@sku = '' OR m.sku = @sku)`
	inPayments  = `+p.id >= @from AND +p.id < @until`
)

// checks is the table of the checks that compare rows. stock.Account.Check checks the sums of a SKU.
var checks = []check{ //nolint:gochecknoglobals // a table
	{stock.I2, "idempotency key %s of buyer %s is not on record", "orders.id", `
		SELECT NULL, o.id, o.idempotency_key, o.buyer FROM orders AS o
		LEFT JOIN idempotency_keys AS k ON k.buyer = o.buyer AND k.idempotency_key = o.idempotency_key
		WHERE k.buyer IS NULL AND ` + keyIsKept + ` AND ` + inOrders},
	{stock.I2, "idempotency key %s of buyer %s belongs to order %s", "orders.id", `
		SELECT NULL, o.id, o.idempotency_key, o.buyer, k.order_id FROM orders AS o
		JOIN idempotency_keys AS k ON k.buyer = o.buyer AND k.idempotency_key = o.idempotency_key
		WHERE k.order_id <> o.id AND ` + keyIsKept + ` AND ` + inOrders},
	{stock.I2, "idempotency key %s of buyer %s names an order that does not exist", "idempotency_keys.buyer", `
		SELECT NULL, k.order_id, k.idempotency_key, k.buyer FROM idempotency_keys AS k
		LEFT JOIN orders AS o ON o.id = k.order_id
		WHERE o.id IS NULL AND @sku = '' AND ` + inKeys},
	{stock.I2, "idempotency key %s of buyer %s names an order placed with key %s of buyer %s", "idempotency_keys.buyer", `
		SELECT NULL, o.id, k.idempotency_key, k.buyer, o.idempotency_key, o.buyer FROM idempotency_keys AS k
		JOIN orders AS o ON o.id = k.order_id
		WHERE (o.buyer <> k.buyer OR o.idempotency_key <> k.idempotency_key AND ` + keyPlaces + `) AND ` + inKeys + ` AND ` + orderHasSKU},
	{stock.I2, "idempotency key %s of buyer %s belongs to the request %s, but the order is %s", "idempotency_keys.buyer", `
		SELECT NULL, o.id, k.idempotency_key, k.buyer, k.fingerprint, o.status FROM idempotency_keys AS k
		JOIN orders AS o ON o.id = k.order_id
		WHERE (k.fingerprint LIKE 'pay:%' AND o.status <> 'paid' OR k.fingerprint LIKE 'cancel:%' AND o.status <> 'cancelled')
		AND ` + inKeys + ` AND ` + orderHasSKU},
	// The hint, which SQLite ignores, makes MySQL sort. A temporary table would take three times as long.
	{stock.I4, "fence %s was accepted more than once: its reservations are from %s to %s", "movements.sku", `
		SELECT /*! SQL_BIG_RESULT */ m.sku, NULL, m.fence, CAST(MIN(m.created_at) AS CHAR), CAST(MAX(m.created_at) AS CHAR)
		FROM movements AS m
		WHERE m.kind = 'reserve' AND m.fence > 0 AND ` + inMovements + ` GROUP BY m.sku, m.fence
		HAVING MIN(m.created_at) <> MAX(m.created_at)`},
	{stock.I5, "order has no lines", "orders.id", `
		SELECT NULL, o.id FROM orders AS o LEFT JOIN order_lines AS l ON l.order_id = o.id
		WHERE l.order_id IS NULL AND @sku = '' AND ` + inOrders},
	{stock.I5, "line of %s units belongs to an order that does not exist", "order_lines.order_id", `
		SELECT l.sku, l.order_id, l.units FROM order_lines AS l LEFT JOIN orders AS o ON o.id = l.order_id
		WHERE o.id IS NULL AND ` + inLines},
	{stock.I5, "line of %s units has no movement that reserves them", "order_lines.order_id", `
		SELECT l.sku, l.order_id, l.units FROM order_lines AS l
		LEFT JOIN movements AS m ON m.order_id = l.order_id AND m.sku = l.sku AND m.kind = 'reserve'
		WHERE m.id IS NULL AND ` + inLines},
	{stock.I5, "line of %s units, but movement %s (%s) changes supplied by %s, available by %s, reserved by %s, sold by %s",
		"order_lines.order_id", `
		SELECT l.sku, l.order_id, l.units, m.id, m.kind, m.supplied, m.available, m.reserved, m.sold
		FROM order_lines AS l JOIN movements AS m ON m.order_id = l.order_id AND m.sku = l.sku AND m.kind <> 'supply'
		WHERE (m.supplied <> 0
			OR m.available <> CASE m.kind WHEN 'reserve' THEN -l.units WHEN 'release' THEN l.units ELSE 0 END
			OR m.reserved <> CASE m.kind WHEN 'reserve' THEN l.units ELSE -l.units END
			OR m.sold <> CASE m.kind WHEN 'sell' THEN l.units ELSE 0 END)
		AND ` + inLines},
	{stock.I5, "movement %s (%s) belongs to an order that has no line of this SKU", "movements.order_id", `
		SELECT m.sku, m.order_id, m.id, m.kind FROM movements AS m
		LEFT JOIN order_lines AS l ON l.order_id = m.order_id AND l.sku = m.sku
		WHERE l.order_id IS NULL AND ` + inMoved},
	{stock.I5, "movement %s (%s) belongs to no order", "movements.sku", `
		SELECT m.sku, NULL, m.id, m.kind FROM movements AS m
		WHERE m.order_id IS NULL AND m.kind <> 'supply' AND ` + inMovements},
	{stock.I5, "supply %s changes supplied by %s, available by %s, reserved by %s, sold by %s", "movements.sku", `
		SELECT m.sku, m.order_id, m.id, m.supplied, m.available, m.reserved, m.sold FROM movements AS m
		WHERE m.kind = 'supply' AND (m.order_id IS NOT NULL OR m.supplied <> m.available OR m.reserved <> 0 OR m.sold <> 0)
		AND ` + inMovements},
	{stock.I5, "movement %s (%s) belongs to a SKU that does not exist", "movements.sku", `
		SELECT m.sku, m.order_id, m.id, m.kind FROM movements AS m LEFT JOIN skus AS s ON s.name = m.sku
		WHERE s.name IS NULL AND ` + inMovements},
	{stock.I5, "order has the unknown status %s", "orders.id", `
		SELECT NULL, o.id, o.status FROM orders AS o
		WHERE o.status NOT IN ('pending', 'paid', 'cancelled', 'expired') AND ` + inOrders},
	{stock.I5, "order is %s, but no movement ends its line of %s units", "order_lines.order_id", `
		SELECT l.sku, l.order_id, o.status, l.units FROM order_lines AS l JOIN orders AS o ON o.id = l.order_id
		LEFT JOIN movements AS m ON m.order_id = l.order_id AND m.sku = l.sku
			AND m.kind = CASE o.status WHEN 'paid' THEN 'sell' ELSE 'release' END
		WHERE o.status IN ('paid', 'cancelled', 'expired') AND m.id IS NULL AND ` + inLines},
	{stock.I5, "order is %s, but has movement %s (%s)", "movements.order_id", `
		SELECT m.sku, m.order_id, o.status, m.id, m.kind FROM movements AS m JOIN orders AS o ON o.id = m.order_id
		WHERE (m.kind = 'sell' AND o.status <> 'paid' OR m.kind = 'release' AND o.status NOT IN ('cancelled', 'expired'))
		AND ` + inMoved},
	{stock.I5, "order is in %s, but its line of sku %s is in %s", "orders.id", `
		SELECT NULL, o.id, o.currency, l.sku, l.currency FROM orders AS o JOIN order_lines AS l ON l.order_id = o.id
		WHERE l.currency <> o.currency AND ` + inOrders},
	{stock.I5, "total is %s, but its lines add up to %s", "orders.id", `
		SELECT /*! SQL_BIG_RESULT */ NULL, o.id, o.total_minor, SUM(l.units * l.price_minor)
		FROM orders AS o JOIN order_lines AS l ON l.order_id = o.id
		WHERE ` + inOrders + ` GROUP BY o.id, o.total_minor HAVING SUM(l.units * l.price_minor) <> o.total_minor`},
	{stock.I5, "delivery %s of %s units has no movement that supplies them", "deliveries.sku", `
		SELECT d.sku, NULL, d.idempotency_key, d.units FROM deliveries AS d
		LEFT JOIN movements AS m ON m.sku = d.sku AND m.id = d.movement_id AND m.kind = 'supply' AND m.supplied = d.units
		WHERE m.id IS NULL AND +d.sku >= @from AND +d.sku < @until`},
	// The creation of a SKU makes one supply without a delivery.
	{stock.I5, "%s movements supply units, but %s deliveries are on record", "movements.sku", `
		SELECT m.sku, NULL, m.supplies, COALESCE(d.deliveries, 0)
		FROM (SELECT m.sku, COUNT(*) AS supplies FROM movements AS m
			WHERE m.kind = 'supply' AND ` + inMovements + ` GROUP BY m.sku) AS m
		LEFT JOIN (SELECT sku, COUNT(*) AS deliveries FROM deliveries
			WHERE +sku >= @from AND +sku < @until GROUP BY sku) AS d ON d.sku = m.sku
		WHERE m.supplies <> COALESCE(d.deliveries, 0) + 1`},
	{stock.I5, "buyer %s has %s units in pending and paid orders, but the limit counts %s", "buyer_units.sku", `
		SELECT b.sku, NULL, b.buyer, SUM(b.ordered), SUM(b.counted) FROM (
			SELECT sku, buyer, 0 AS ordered, units AS counted FROM buyer_units WHERE +sku >= @from AND +sku < @until
			UNION ALL
			SELECT l.sku, o.buyer, l.units, 0
			FROM skus AS s JOIN order_lines AS l ON l.sku = s.name JOIN orders AS o ON o.id = l.order_id
			WHERE s.limit_per_buyer > 0 AND o.status IN ('pending', 'paid') AND +s.name >= @from AND +s.name < @until
		) AS b GROUP BY b.sku, b.buyer HAVING SUM(b.ordered) <> SUM(b.counted)
		AND NOT EXISTS (SELECT 1 FROM buyer_units AS c WHERE c.sku = b.sku AND c.buyer = '')`}, // see recount
	{stock.I8, "order is paid, but %s payments pay it", "orders.id", `
		SELECT /*! SQL_BIG_RESULT */ NULL, o.id, COUNT(p.id) FROM orders AS o LEFT JOIN payments AS p ON p.refusal = '' AND p.order_id = o.id
		WHERE o.status = 'paid' AND ` + inOrders + ` GROUP BY o.id HAVING COUNT(p.id) <> 1`},
	{stock.I8, "payment %s of %s %s pays an order that costs %s %s and is %s", "payments.id", `
		SELECT NULL, p.order_id, p.id, p.amount_minor, p.currency, o.total_minor, o.currency, o.status
		FROM payments AS p JOIN orders AS o ON o.id = p.order_id
		WHERE p.refusal = '' AND (o.status <> 'paid' OR o.total_minor <> p.amount_minor OR o.currency <> p.currency)
		AND ` + inPayments + ` AND ` + orderHasSKU},
	// Of a payment whose refund was reported first, the order is not known yet.
	{stock.I8, "payment %s is of an order that does not exist", "payments.id", `
		SELECT NULL, p.order_id, p.id FROM payments AS p LEFT JOIN orders AS o ON o.id = p.order_id
		WHERE o.id IS NULL AND NOT (p.order_id = '' AND p.refusal = 'already-refunded') AND @sku = '' AND ` + inPayments},
}
