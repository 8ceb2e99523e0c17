package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

func payments(query *gorm.DB) ([]order.Payment, error) {
	type paymentRow struct {
		ID, OrderID           string
		AmountMinor           int64
		Currency, Refusal     string
		CreatedAt, RefundedAt dbTime
	}
	var rows []paymentRow
	err := query.Find(&rows).Error
	return order.Map(rows, func(p paymentRow) order.Payment {
		return order.Payment{
			ID: p.ID, OrderID: p.OrderID, Amount: stock.Money{Minor: p.AmountMinor, Currency: p.Currency},
			Refusal: p.Refusal, RecordedAt: p.CreatedAt.Time, RefundedAt: p.RefundedAt.Time,
		}
	}), err
}

func (t *tx) RecordPayments(all ...order.Payment) (known map[string]order.Payment, others []string, err error) {
	idOf := func(p order.Payment) string { return p.ID }
	sorted := slices.SortedFunc(slices.Values(all), func(a, b order.Payment) int { return cmp.Compare(a.ID, b.ID) })
	if !t.store.sqlite { // in SQLite, no other transaction writes
		others, err = withoutWaiting(order.Map(sorted, idOf), func(ids []string) error {
			return t.db.Exec("SELECT id FROM payments FORCE INDEX (PRIMARY) WHERE id IN ? FOR UPDATE NOWAIT", ids).Error
		})
	}
	if err != nil {
		return nil, nil, failed(err, "lock %d payments", len(all))
	}
	sorted = slices.DeleteFunc(sorted, func(p order.Payment) bool { return slices.Contains(others, p.ID) })
	known, err = insertNew(sorted, idOf, t.insertPayments, func(ids []string) (map[string]order.Payment, error) {
		byID := map[string]order.Payment{}
		found, err := payments(t.db.Table("payments").Where("id IN ?", ids))
		for _, p := range found {
			byID[p.ID] = p
		}
		return byID, err
	})
	for _, p := range all {
		if before, isKnown := known[p.ID]; isKnown && before.OrderID == "" && err == nil {
			known[p.ID], err = t.fillIn(before, p)
		}
	}
	return known, others, failed(err, "record payments")
}

// fillIn adds the order and the amount of a payment to the record that Refunded has made.
func (t *tx) fillIn(early, p order.Payment) (order.Payment, error) {
	early.OrderID, early.Amount = p.OrderID, p.Amount
	const fill = "UPDATE payments SET order_id = ?, amount_minor = ?, currency = ? WHERE id = ? AND order_id = ''"
	// ErrLocked: another transaction has filled it in since it was read.
	return early, mustMatch(t.db, order.ErrLocked, fill, p.OrderID, p.Amount.Minor, p.Amount.Currency, p.ID)
}

// ForgetPayments implements order.Tx. It deletes each row by its primary key, as FreeKeys does.
func (t *tx) ForgetPayments(ids ...string) error {
	for _, id := range ids {
		if err := t.db.Exec("DELETE FROM payments WHERE id = ?", id).Error; err != nil {
			return failed(err, "forget payment")
		}
	}
	return nil
}

func (t *tx) insertPayments(all []order.Payment) error {
	rows := values(all, func(p order.Payment) []any {
		return []any{p.ID, p.OrderID, p.Amount.Minor, p.Amount.Currency, p.Refusal, gorm.Expr(t.store.clock)}
	})
	return t.db.Exec("INSERT INTO payments (id, order_id, amount_minor, currency, refusal, created_at) VALUES ?", rows).Error
}

// Payments returns at most limit payments of a list with an id greater than after, ordered by id.
func (s *Store) Payments(ctx context.Context, list order.PaymentList, after string, limit int) ([]order.Payment, error) {
	query := s.db.WithContext(ctx).Table("payments")
	switch list {
	case order.AllPayments:
	case order.RefusedPayments:
		query = query.Where("refusal > '' AND refunded_at IS NULL")
		if !s.sqlite {
			query = query.Table("payments FORCE INDEX (payments_of_order)") // few payments are refused
		}
	case order.RefundedPayments:
		query = query.Where("refusal = '' AND refunded_at IS NOT NULL")
	}
	found, err := payments(query.Where("id > ?", after).Order("id").Limit(limit))
	return found, explain(ctx, "read payments", err)
}

// RefundLag returns the age of the oldest refused payment without a refund, by the database's clock, or
// 0 if none exists.
func (s *Store) RefundLag(ctx context.Context) (time.Duration, error) {
	var times struct{ First, Now dbTime }
	err := s.db.WithContext(ctx).Raw("SELECT MIN(created_at) AS first, " + s.clock +
		" AS now FROM payments WHERE refusal > '' AND refunded_at IS NULL").
		Scan(&times).Error
	if err != nil || times.First.IsZero() {
		return 0, explain(ctx, "look for payments to refund", err)
	}
	return times.Now.Sub(times.First.Time), nil
}

// Refunded notes the refund of a payment, once, and returns the payment. If the payment is not on record yet, Refunded
// records it without an order and an amount, as refused: reports may come out of order. The statement waits for a
// transaction that records the payment, so that exactly one of the two comes first.
func (s *Store) Refunded(ctx context.Context, id string) (order.Payment, error) {
	if strings.HasPrefix(id, order.OwnWord) {
		return order.Payment{}, fmt.Errorf("ids that begin with %q are the shop's own: %w", order.OwnWord, order.ErrNoPayment)
	}
	onRecord := "ON DUPLICATE KEY UPDATE"
	if s.sqlite {
		onRecord = "ON CONFLICT DO UPDATE SET"
	}
	return s.noteRefund(ctx, id, "INSERT INTO payments (id, order_id, amount_minor, currency, refusal, created_at, refunded_at) "+
		"VALUES (?, '', 0, '', '"+order.ErrAlreadyRefunded.Code+"', "+s.clock+", "+s.clock+") "+
		onRecord+" refunded_at = COALESCE(refunded_at, "+s.clock+")")
}

// RefundFailed takes back what Refunded has noted, and returns the payment, or order.ErrNoPayment if no
// payment has this id.
func (s *Store) RefundFailed(ctx context.Context, id string) (order.Payment, error) {
	return s.noteRefund(ctx, id, "UPDATE payments SET refunded_at = NULL WHERE id = ?")
}

// noteRefund changes a payment and returns it.
func (s *Store) noteRefund(ctx context.Context, id, statement string) (p order.Payment, err error) {
	seen := s.changes()
	err = s.inTx(ctx, func(t *tx) error {
		if err := t.db.Exec(statement, id).Error; err != nil {
			return err
		}
		found, err := payments(t.db.Table("payments").Where("id = ?", id))
		if err == nil && len(found) == 0 {
			err = order.ErrNoPayment
		}
		if err == nil {
			p = found[0]
		}
		return err
	})
	return p, s.confirm(ctx, seen, explain(ctx, "note a refund", err))
}
