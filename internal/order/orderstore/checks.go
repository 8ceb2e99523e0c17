package orderstore

import (
	"database/sql"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// check looks for one kind of difference. Its query returns the SKU and the
// order that a difference concerns, NULL for none, then what detail mentions.
type check struct {
	invariant string
	query     string
	detail    string // a format with one %s for each further column
}

// checks is the table of everything that one row can have wrong beside another;
// what concerns the sums of a SKU is in stock.Account.Check.
func checks() []check {
	return []check{
		{
			invariant: "I2", detail: "idempotency key %s of buyer %s is not on record",
			query: `
				SELECT NULL, o.id, o.idempotency_key, o.buyer
				FROM orders AS o
				LEFT JOIN idempotency_keys AS k ON k.buyer = o.buyer AND k.idempotency_key = o.idempotency_key
				WHERE k.buyer IS NULL AND ` + keyIsKept + ` AND ` + orderHasSKU,
		},
		{
			invariant: "I2", detail: "idempotency key %s of buyer %s belongs to order %s",
			query: `
				SELECT NULL, o.id, o.idempotency_key, o.buyer, k.order_id
				FROM orders AS o
				JOIN idempotency_keys AS k ON k.buyer = o.buyer AND k.idempotency_key = o.idempotency_key
				WHERE k.order_id <> o.id AND ` + keyIsKept + ` AND ` + orderHasSKU,
		},
		{
			invariant: "I2", detail: "idempotency key %s of buyer %s names an order that does not exist",
			query: `
				SELECT NULL, k.order_id, k.idempotency_key, k.buyer
				FROM idempotency_keys AS k
				LEFT JOIN orders AS o ON o.id = k.order_id
				WHERE o.id IS NULL AND @sku = ''`,
		},
		{
			invariant: "I2", detail: "idempotency key %s of buyer %s names an order placed with key %s of buyer %s",
			query: `
				SELECT NULL, o.id, k.idempotency_key, k.buyer, o.idempotency_key, o.buyer
				FROM idempotency_keys AS k
				JOIN orders AS o ON o.id = k.order_id
				WHERE (o.buyer <> k.buyer OR o.idempotency_key <> k.idempotency_key AND ` + keyPlaces + `) AND ` + orderHasSKU,
		},
		{
			invariant: "I2", detail: "idempotency key %s of buyer %s is of the request %s, but the order is %s",
			query: `
				SELECT NULL, o.id, k.idempotency_key, k.buyer, k.fingerprint, o.status
				FROM idempotency_keys AS k
				JOIN orders AS o ON o.id = k.order_id
				WHERE (k.fingerprint LIKE 'pay:%' AND o.status <> 'paid' OR k.fingerprint LIKE 'cancel:%' AND o.status <> 'cancelled')
				  AND ` + orderHasSKU,
		},
		{
			// The hint, which SQLite skips, makes MySQL sort; its table of all fences took three times as long.
			invariant: "I4", detail: "fence %s was accepted more than once: its reservations are from %s to %s",
			query: `
				SELECT /*! SQL_BIG_RESULT */ m.sku, NULL, m.fence, CAST(MIN(m.created_at) AS CHAR), CAST(MAX(m.created_at) AS CHAR)
				FROM movements AS m
				WHERE m.kind = 'reserve' AND m.fence > 0 AND (@sku = '' OR m.sku = @sku)
				GROUP BY m.sku, m.fence
				HAVING MIN(m.created_at) <> MAX(m.created_at)`,
		},
		{
			invariant: "I5", detail: "order has no lines",
			query: `
				SELECT NULL, o.id
				FROM orders AS o
				LEFT JOIN order_lines AS l ON l.order_id = o.id
				WHERE l.order_id IS NULL AND @sku = ''`,
		},
		{
			invariant: "I5", detail: "line of %s units of an order that does not exist",
			query: `
				SELECT l.sku, l.order_id, l.units
				FROM order_lines AS l
				LEFT JOIN orders AS o ON o.id = l.order_id
				WHERE o.id IS NULL AND (@sku = '' OR l.sku = @sku)`,
		},
		{
			invariant: "I5", detail: "line of %s units of a SKU that does not exist",
			query: `
				SELECT l.sku, l.order_id, l.units
				FROM order_lines AS l
				LEFT JOIN skus AS s ON s.name = l.sku
				WHERE s.name IS NULL AND (@sku = '' OR l.sku = @sku)`,
		},
		{
			invariant: "I5", detail: "line of %s units has no movement that reserves them",
			query: `
				SELECT l.sku, l.order_id, l.units
				FROM order_lines AS l
				LEFT JOIN movements AS m ON m.order_id = l.order_id AND m.sku = l.sku AND m.kind = 'reserve'
				WHERE m.id IS NULL AND (@sku = '' OR l.sku = @sku)`,
		},
		{
			invariant: "I5", detail: "line of %s units, but movement %s changes supplied by %s, available by %s, reserved by %s, sold by %s",
			query: `
				SELECT l.sku, l.order_id, l.units, m.id, m.supplied, m.available, m.reserved, m.sold
				FROM order_lines AS l
				JOIN movements AS m ON m.order_id = l.order_id AND m.sku = l.sku AND m.kind = 'reserve'
				WHERE (m.available <> -l.units OR m.reserved <> l.units OR m.supplied <> 0 OR m.sold <> 0)
				  AND (@sku = '' OR l.sku = @sku)`,
		},
		{
			invariant: "I5", detail: "movement %s (%s) is of an order that has no line of this SKU",
			query: `
				SELECT m.sku, m.order_id, m.id, m.kind
				FROM movements AS m
				LEFT JOIN order_lines AS l ON l.order_id = m.order_id AND l.sku = m.sku
				WHERE m.order_id IS NOT NULL AND l.order_id IS NULL AND (@sku = '' OR m.sku = @sku)`,
		},
		{
			invariant: "I5", detail: "movement %s (%s) is of no order",
			query: `
				SELECT m.sku, NULL, m.id, m.kind
				FROM movements AS m
				WHERE m.order_id IS NULL AND m.kind <> 'supply' AND (@sku = '' OR m.sku = @sku)`,
		},
		{
			invariant: "I5", detail: "supply %s changes supplied by %s, available by %s, reserved by %s, sold by %s",
			query: `
				SELECT m.sku, m.order_id, m.id, m.supplied, m.available, m.reserved, m.sold
				FROM movements AS m
				WHERE m.kind = 'supply' AND (m.order_id IS NOT NULL OR m.supplied <> m.available OR m.reserved <> 0 OR m.sold <> 0)
				  AND (@sku = '' OR m.sku = @sku)`,
		},
		{
			invariant: "I5", detail: "movement %s (%s) is of a SKU that does not exist",
			query: `
				SELECT m.sku, m.order_id, m.id, m.kind
				FROM movements AS m
				LEFT JOIN skus AS s ON s.name = m.sku
				WHERE s.name IS NULL AND (@sku = '' OR m.sku = @sku)`,
		},
	}
}

// keyIsKept narrows a query on orders AS o to those whose key no purge can have
// deleted. An older order may lack its key, and another request may have it now.
const keyIsKept = `o.created_at >= (SELECT purged_until FROM idempotency_purge)`

// keyPlaces narrows a query on idempotency_keys AS k and their orders AS o to the
// keys that do not end an order; see order.endPrint.
const keyPlaces = `REPLACE(k.fingerprint, o.id, '') NOT IN ('pay:', 'cancel:')`

// orderHasSKU narrows a query on orders AS o to those with a line of the SKU.
const orderHasSKU = `(@sku = '' OR EXISTS (SELECT 1 FROM order_lines AS l WHERE l.order_id = o.id AND l.sku = @sku))`

func (c check) run(tx *gorm.DB, sku string, difference func(stock.Difference) error) error {
	var subject, orderID sql.NullString
	values := make([]sql.NullString, strings.Count(c.detail, "%s"))
	into := []any{&subject, &orderID}
	mentioned := make([]any, len(values))
	for i := range values {
		into = append(into, &values[i])
	}
	return each(tx, c.query, sku, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return readError(err, "rows that break "+c.invariant)
		}
		for i, value := range values {
			mentioned[i] = value.String
		}
		return difference(stock.Difference{
			Invariant: c.invariant,
			SKU:       subject.String,
			OrderID:   orderID.String,
			Detail:    fmt.Sprintf(c.detail, mentioned...),
		})
	})
}
