package orderstore

// lifeChecks is the part of the table that is about how orders end: a paid one
// has sold its units, a cancelled or expired one has given them back, each once
// (the schema refuses a second movement of a kind) and neither both.
func lifeChecks() []check {
	return []check{
		{
			invariant: "I5", detail: "order is %s, which no order can be",
			query: `
				SELECT NULL, o.id, o.status
				FROM orders AS o
				WHERE o.status NOT IN ('pending', 'paid', 'cancelled', 'expired') AND ` + orderHasSKU,
		},
		{
			invariant: "I5", detail: "order is paid, but no movement sells its %s units",
			query: `
				SELECT l.sku, l.order_id, l.units
				FROM orders AS o
				JOIN order_lines AS l ON l.order_id = o.id
				LEFT JOIN movements AS m ON m.order_id = l.order_id AND m.sku = l.sku AND m.kind = 'sell'
				WHERE o.status = 'paid' AND m.id IS NULL AND (@sku = '' OR l.sku = @sku)`,
		},
		{
			invariant: "I5", detail: "order is %s, but no movement gives its %s units back",
			query: `
				SELECT l.sku, l.order_id, o.status, l.units
				FROM orders AS o
				JOIN order_lines AS l ON l.order_id = o.id
				LEFT JOIN movements AS m ON m.order_id = l.order_id AND m.sku = l.sku AND m.kind = 'release'
				WHERE o.status IN ('cancelled', 'expired') AND m.id IS NULL AND (@sku = '' OR l.sku = @sku)`,
		},
		{
			invariant: "I5", detail: "order is %s, but movement %s sells units of it",
			query: `
				SELECT m.sku, m.order_id, o.status, m.id
				FROM orders AS o
				JOIN movements AS m ON m.order_id = o.id
				WHERE m.kind = 'sell' AND o.status <> 'paid' AND (@sku = '' OR m.sku = @sku)`,
		},
		{
			invariant: "I5", detail: "order is %s, but movement %s gives units of it back",
			query: `
				SELECT m.sku, m.order_id, o.status, m.id
				FROM orders AS o
				JOIN movements AS m ON m.order_id = o.id
				WHERE m.kind = 'release' AND o.status NOT IN ('cancelled', 'expired') AND (@sku = '' OR m.sku = @sku)`,
		},
		{
			invariant: "I5", detail: "line of %s units, but movement %s (%s) changes supplied by %s, available by %s, reserved by %s, sold by %s",
			query: `
				SELECT l.sku, l.order_id, l.units, m.id, m.kind, m.supplied, m.available, m.reserved, m.sold
				FROM order_lines AS l
				JOIN movements AS m ON m.order_id = l.order_id AND m.sku = l.sku
				WHERE (m.kind = 'sell' AND (m.supplied <> 0 OR m.available <> 0 OR m.reserved <> -l.units OR m.sold <> l.units)
				       OR m.kind = 'release' AND (m.supplied <> 0 OR m.available <> l.units OR m.reserved <> -l.units OR m.sold <> 0))
				  AND (@sku = '' OR l.sku = @sku)`,
		},
	}
}
