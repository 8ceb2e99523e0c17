package store

import (
	"cmp"
	"context"
	"slices"
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

func (t *tx) RecordPayments(all ...order.Payment) (map[string]order.Payment, error) {
	idOf := func(p order.Payment) string { return p.ID }
	sorted := slices.SortedFunc(slices.Values(all), func(a, b order.Payment) int { return cmp.Compare(a.ID, b.ID) })
	known, err := insertNew(sorted, idOf, t.insertPayments, func(ids []string) (map[string]order.Payment, error) {
		byID := map[string]order.Payment{}
		found, err := payments(t.db.Table("payments").Where("id IN ?", ids))
		for _, p := range found {
			byID[p.ID] = p
		}
		return byID, err
	})
	return known, failed(err, "record payments")
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

// Payments returns at most limit payments with an id greater than after, ordered by id. With refused, it returns only the
// payments that were refused and not refunded.
func (s *Store) Payments(ctx context.Context, refused bool, after string, limit int) ([]order.Payment, error) {
	query := s.db.WithContext(ctx).Table("payments")
	if refused {
		query = query.Where("refusal > '' AND refunded_at IS NULL")
		if !s.sqlite {
			query = query.Table("payments FORCE INDEX (payments_of_order)") // few payments are refused
		}
	}
	found, err := payments(query.Where("id > ?", after).Order("id").Limit(limit))
	return found, explain(ctx, "read payments", err)
}

// RefundLag returns the age of the oldest refused payment without a refund, by the database's clock, or 0 if none exists.
func (s *Store) RefundLag(ctx context.Context) (time.Duration, error) {
	var times struct{ First, Now dbTime }
	err := s.db.WithContext(ctx).Raw("SELECT MIN(created_at) AS first, " + s.clock + " AS now FROM payments WHERE refusal > '' AND refunded_at IS NULL").
		Scan(&times).Error
	if err != nil || times.First.IsZero() {
		return 0, explain(ctx, "look for payments to refund", err)
	}
	return times.Now.Sub(times.First.Time), nil
}

// Refunded notes the refund of a payment, once, and returns the payment, or order.ErrNoPayment if no payment has this id.
func (s *Store) Refunded(ctx context.Context, id string) (p order.Payment, err error) {
	seen, db := s.changes(), s.db.WithContext(ctx)
	err = db.Exec("UPDATE payments SET refunded_at = "+s.clock+" WHERE id = ? AND refunded_at IS NULL", id).Error
	var found []order.Payment
	if err == nil {
		found, err = payments(db.Table("payments").Where("id = ?", id))
	}
	switch {
	case err != nil:
		return p, explain(ctx, "note a refund", err)
	case len(found) == 0:
		return p, s.confirm(ctx, seen, order.ErrNoPayment)
	}
	return found[0], nil
}
