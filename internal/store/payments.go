package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

type paymentRow struct {
	ID          string
	OrderID     string
	AmountMinor int64
	Currency    string
	Refusal     string
	CreatedAt   dbTime
	RefundedAt  *dbTime
}

func (p paymentRow) payment() order.Payment {
	payment := order.Payment{
		ID: p.ID, OrderID: p.OrderID, Amount: stock.Money{Minor: p.AmountMinor, Currency: p.Currency},
		Refusal: p.Refusal, RecordedAt: p.CreatedAt.Time,
	}
	if p.RefundedAt != nil {
		payment.RefundedAt = p.RefundedAt.Time
	}
	return payment
}

// payments returns the payments that a query finds.
func payments(query *gorm.DB) ([]order.Payment, error) {
	var rows []paymentRow
	err := query.Find(&rows).Error
	found := make([]order.Payment, len(rows))
	for i, row := range rows {
		found[i] = row.payment()
	}
	return found, err
}

// errRecorded means that one of the payments is on record.
var errRecorded = errors.New("payment is on record")

// RecordPayments implements order.Tx, as ClaimKeys does: most payments are new.
func (t *tx) RecordPayments(all ...order.Payment) (map[string]order.Payment, error) {
	all = slices.SortedFunc(slices.Values(all), func(a, b order.Payment) int { return cmp.Compare(a.ID, b.ID) })
	known := map[string]order.Payment{}
	err := t.insertPayments(all)
	for try := 0; try < claimTries && errors.Is(err, errRecorded); try++ {
		ids := make([]string, len(all))
		for i, p := range all {
			ids[i] = p.ID
		}
		found, unread := payments(t.db.Table("payments").Where("id IN ?", ids))
		if unread != nil {
			return nil, failed(unread, "read payments")
		}
		for _, p := range found {
			known[p.ID] = p
		}
		all = slices.DeleteFunc(all, func(p order.Payment) bool { _, recorded := known[p.ID]; return recorded })
		err = t.insertPayments(all)
	}
	if errors.Is(err, errRecorded) { // others record one after the other
		err = order.ErrBusy
	}
	return known, failed(err, "record payments")
}

func (t *tx) insertPayments(all []order.Payment) error {
	if len(all) == 0 {
		return nil
	}
	row := "(?, ?, ?, ?, ?, " + t.store.clock + ")"
	values := make([]any, 0, 5*len(all))
	for _, p := range all {
		values = append(values, p.ID, p.OrderID, p.Amount.Minor, p.Amount.Currency, p.Refusal)
	}
	err := t.db.Exec("INSERT INTO payments (id, order_id, amount_minor, currency, refusal, created_at) VALUES "+
		row+strings.Repeat(", "+row, len(all)-1), values...).Error
	if classify(err) == duplicate {
		return errRecorded
	}
	return err
}

// Payments returns at most limit payments with an id greater than after, ordered by id: all, or only those refused and not
// refunded.
func (s *Store) Payments(ctx context.Context, refused bool, after string, limit int) ([]order.Payment, error) {
	query := s.db.WithContext(ctx).Table("payments")
	if refused {
		query = query.Where("refusal > '' AND refunded_at IS NULL")
		if !s.sqlite {
			query = query.Table("payments FORCE INDEX (payments_of_order)") // few are refused
		}
	}
	found, err := payments(query.Where("id > ?", after).Order("id").Limit(limit))
	return found, explain(ctx, "read payments", err)
}

// RefundLag returns for how long the first of the payments that were refused and are not refunded has been on record, by
// the database's clock; 0 without any.
func (s *Store) RefundLag(ctx context.Context) (time.Duration, error) {
	var times struct {
		First *dbTime
		Now   dbTime
	}
	err := s.db.WithContext(ctx).Raw("SELECT MIN(created_at) AS first, " + s.clock + " AS now FROM payments WHERE refusal > '' AND refunded_at IS NULL").
		Scan(&times).Error
	if err != nil || times.First == nil {
		return 0, explain(ctx, "look for payments to refund", err)
	}
	return times.Now.Sub(times.First.Time), nil
}

// Refunded notes that a payment was refunded, once, and returns it; order.ErrNoPayment if there is none with this id.
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
