package order_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// message sends a payment provider's message about an order. Each order has its own ids of payments.
type message func(b *bundle, t *testing.T, o order.Order) error

func succeeded(id string) message {
	return func(b *bundle, t *testing.T, o order.Order) error {
		ended, err := b.TakePayment(t.Context(), pays(id+"-"+o.ID, o))
		if err == nil && ended.Status != order.Paid {
			t.Errorf("%s: got %s without an error", id, ended.Status)
		}
		return err
	}
}

func succeededWith(id string, amount stock.Money) message {
	return func(b *bundle, t *testing.T, o order.Order) error {
		_, err := b.TakePayment(t.Context(), order.Payment{ID: id + "-" + o.ID, OrderID: o.ID, Amount: amount})
		return err
	}
}

// refundedFirst reports the refund of a payment before the payment.
func refundedFirst(b *bundle, t *testing.T, o order.Order) error {
	b.refunded(t, "pi-early-"+o.ID)
	return succeeded("pi-early")(b, t, o)
}

// refundedLater reports the refund of a payment after the payment.
func refundedLater(b *bundle, t *testing.T, o order.Order) error {
	err := succeeded("pi-first")(b, t, o)
	b.refunded(t, "pi-first-"+o.ID)
	return err
}

func (b *bundle) refunded(t testing.TB, id string) {
	t.Helper()
	if p, err := b.db.Refunded(t.Context(), id); err != nil || p.RefundedAt.IsZero() {
		t.Errorf("got %+v, %v, want when it was refunded", p, err)
	}
}

func failed(release bool) message {
	return func(b *bundle, t *testing.T, o order.Order) error {
		_, err := b.PaymentFailed(t.Context(), o.ID, release)
		return err
	}
}

func extended(b *bundle, t *testing.T, o order.Order) error {
	_, err := b.Extend(t.Context(), o.ID)
	return err
}

// "Each paid order was paid by one payment, of its total. Every other payment is on record as refused, so that its
// money can be refunded. A payment has one answer, however often and however late it is repeated." Each message of a
// provider, alone and behind a success, meets an order in each state.
func TestPayments_inEachState(t *testing.T) {
	t.Parallel()
	states := []struct {
		name   string
		reach  func(b *bundle, t *testing.T, o order.Order)
		status order.Status
	}{
		{"pending", func(*bundle, *testing.T, order.Order) {}, order.Pending},
		{"last millisecond", func(b *bundle, t *testing.T, o order.Order) { b.expireIn(t, o, time.Millisecond) }, ""}, // either end, as the clock has it
		{"due", func(b *bundle, t *testing.T, o order.Order) { b.expireIn(t, o, -time.Microsecond) }, order.Pending},
		{"expired", func(b *bundle, t *testing.T, o order.Order) {
			b.expireIn(t, o, -time.Microsecond)
			if n, err := b.ExpireDue(t.Context(), math.MaxInt); n == 0 || err != nil {
				t.Fatalf("got %d expired, %v", n, err)
			}
		}, order.Expired},
		{"cancelled", func(b *bundle, t *testing.T, o order.Order) {
			if _, err := b.Cancel(t.Context(), order.EndRequest{Buyer: "ann", OrderID: o.ID}); err != nil {
				t.Fatal(err)
			}
		}, order.Cancelled},
		{"paid", func(b *bundle, t *testing.T, o order.Order) {
			if err := succeeded("pi-first")(b, t, o); err != nil {
				t.Fatal(err)
			}
		}, order.Paid},
	}
	less, dollars := stock.Money{Minor: 2499, Currency: "EUR"}, stock.Money{Minor: 2500, Currency: "USD"}
	paid, cancelled, expired, refunded := order.ErrAlreadyPaid, order.ErrState, order.ErrExpired, order.ErrAlreadyRefunded
	rows := []struct {
		name string
		say  message
		want map[string]error        // by the state
		then map[string]order.Status // what the order is afterwards, where that changes
	}{
		{"succeeded", succeeded("pi-1"),
			map[string]error{"due": expired, "expired": expired, "cancelled": cancelled, "paid": paid},
			map[string]order.Status{"pending": order.Paid, "due": order.Expired}},
		{"the payment that paid it", succeeded("pi-first"),
			map[string]error{"due": expired, "expired": expired, "cancelled": cancelled},
			map[string]order.Status{"pending": order.Paid, "due": order.Expired}},
		{"too little", succeededWith("pi-2", less),
			map[string]error{"pending": order.ErrAmountMismatch, "due": expired, "expired": expired, "cancelled": cancelled, "paid": paid},
			map[string]order.Status{"due": order.Expired}},
		{"other currency", succeededWith("pi-3", dollars),
			map[string]error{"pending": order.ErrAmountMismatch, "due": expired, "expired": expired, "cancelled": cancelled, "paid": paid},
			map[string]order.Status{"due": order.Expired}},
		{"refunded before it succeeded", refundedFirst,
			map[string]error{"pending": refunded, "due": refunded, "expired": refunded, "cancelled": refunded, "paid": refunded}, nil},
		{"refunded after it succeeded", refundedLater,
			map[string]error{"due": expired, "expired": expired, "cancelled": cancelled},
			map[string]order.Status{"pending": order.Paid, "due": order.Expired}},
		{"failed", failed(false), nil, nil},
		{"failed, released", failed(true), nil, map[string]order.Status{"pending": order.Cancelled, "due": order.Expired}},
		{"extension", extended,
			map[string]error{"due": expired, "expired": expired, "cancelled": cancelled, "paid": cancelled},
			map[string]order.Status{"due": order.Expired}},
	}
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		for _, state := range states {
			for _, row := range rows {
				t.Run(state.name+"/"+row.name, func(t *testing.T) {
					sku := stock.SKU{Name: fmt.Sprint("sku-", order.NewID())}
					b.supply(t, sku.Name, 10)
					o := b.place(t, "key-"+sku.Name, sku.Name, 2)
					state.reach(b, t, o)
					err := row.say(b, t, o)
					now := b.find(t, o.ID)
					if state.name == "last millisecond" {
						b.wantPaidOnce(t, o, now)
						return
					}
					if !errors.Is(err, row.want[state.name]) {
						t.Errorf("got %v, want %v", err, row.want[state.name])
					}
					want := state.status
					if then := row.then[state.name]; then != "" {
						want = then
					}
					if now.Status != want {
						t.Errorf("got %s afterwards, want %s", now.Status, want)
					}
					// Said again, it has the same answer, and changes nothing.
					again := row.say(b, t, o)
					if order.Code(again) != order.Code(err) {
						t.Errorf("again: got %v, and %v at first", again, err)
					}
					if diff := cmp.Diff(now, b.find(t, o.ID)); diff != "" {
						t.Errorf("again (-first +now):\n%s", diff)
					}
					b.wantPaidOnce(t, o, now)
				})
			}
		}
	})
}

// wantPaidOnce fails unless the level and the ledger of an order's two units are as its status says. Each payment has
// either paid the order or is to be refunded. The operator sees the payments that are to be refunded, and a refunded
// one that has paid.
func (b *bundle) wantPaidOnce(t testing.TB, o, now order.Order) {
	t.Helper()
	want := map[order.Status]stock.Level{
		order.Pending: {Supplied: 10, Available: 8, Reserved: 2}, order.Paid: {Supplied: 10, Available: 8, Sold: 2},
		order.Cancelled: {Supplied: 10, Available: 10}, order.Expired: {Supplied: 10, Available: 10},
	}[now.Status]
	if got := b.audit(t, o.Lines[0].SKU).Level; got != want {
		t.Errorf("%s: got level %v, want %v", now.Status, got, want)
	}
	accepted, refused, refunded := 0, map[string]order.Payment{}, map[string]order.Payment{}
	for _, p := range b.payments(t, o, order.AllPayments) {
		if p.Refusal == "" {
			accepted++
		}
		switch isRefunded := !p.RefundedAt.IsZero(); {
		case p.Refusal != "" && !isRefunded:
			refused[p.ID] = p
		case p.Refusal == "" && isRefunded:
			refunded[p.ID] = p
		}
	}
	if diff := cmp.Diff(refused, b.payments(t, o, order.RefusedPayments)); diff != "" {
		t.Errorf("payments that are to be refunded (-want +listed):\n%s", diff)
	}
	if diff := cmp.Diff(refunded, b.payments(t, o, order.RefundedPayments)); diff != "" {
		t.Errorf("payments that paid and were refunded (-want +listed):\n%s", diff)
	}
	if paid := now.Status == order.Paid; accepted != map[bool]int{true: 1}[paid] {
		t.Errorf("got %d payments that paid an order that is %s", accepted, now.Status)
	}
}

// payments returns the payments of an order that are in a list.
func (b *bundle) payments(t testing.TB, o order.Order, list order.PaymentList) map[string]order.Payment {
	t.Helper()
	all, err := b.db.Payments(t.Context(), list, "", math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]order.Payment{}
	for _, p := range all {
		if p.OrderID == o.ID {
			of[p.ID] = p
		}
	}
	return of
}

// "If payment and expiry come at the same instant, exactly one of them ends the order": 1,000 orders fall due one after
// the other, while their payments and the sweeps of three instances come.
func TestPayments_raceWithExpiry(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		const orders, buyers = 1000, 20
		shops := threeShops(t, db)
		b := shops[0].by("batch")
		b.supply(t, "sku-1", 2*orders)
		var placed []order.Order
		for i := range orders {
			placed = append(placed, b.mustPlace(t, purchase(fmt.Sprint("buyer-", i), "key", "sku-1", 2)))
		}
		now, err := db.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range placed {
			b.exec(t, "UPDATE orders SET expires_at = ? WHERE id = ?",
				now.Add(time.Duration(i)*time.Millisecond).UTC().Format("2006-01-02 15:04:05.000000"), o.ID)
		}
		var running sync.WaitGroup
		outcomes := make([]error, orders)
		for worker := range buyers {
			running.Go(func() {
				for i := worker; i < orders; i += buyers {
					time.Sleep(time.Until(now.Add(time.Duration(i) * time.Millisecond)))
					_, outcomes[i] = shops[i%3].TakePayment(t.Context(), pays(fmt.Sprint("pi-", i), placed[i]))
				}
			})
		}
		for _, s := range shops {
			running.Go(func() {
				for range 100 {
					if _, err := s.ExpireDue(t.Context(), math.MaxInt); err != nil {
						t.Error(err)
					}
				}
			})
		}
		running.Wait()
		if _, err := b.ExpireDue(t.Context(), math.MaxInt); err != nil {
			t.Error(err)
		}
		refused, err := db.Payments(t.Context(), order.RefusedPayments, "", orders)
		if err != nil {
			t.Fatal(err)
		}
		paid := int64(0)
		for _, err := range outcomes {
			switch {
			case err == nil:
				paid++
			case !errors.Is(err, order.ErrExpired):
				t.Errorf("got %v, want a payment or an expiry", err)
			}
		}
		t.Logf("%d paid, %d expired", paid, orders-paid)
		if got := b.audit(t, "sku-1").Level; got.Sold != 2*paid || got.Reserved != 0 || len(refused) != orders-int(paid) {
			t.Errorf("got level %v and %d payments to be refunded, want %d orders paid", got, len(refused), paid)
		}
	})
}

// "If the payment is repeated, the answer is the same, however long ago the first answer was." A payment that is
// repeated for another order or amount is not a replay.
func TestService_TakePayment_sameID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		b.supply(t, "sku-1", 10)
		first, second, third := b.place(t, "key-1", "sku-1", 2), b.place(t, "key-2", "sku-1", 2), b.place(t, "key-3", "sku-1", 2)
		want := func(p order.Payment, want error) {
			t.Helper()
			if _, err := b.TakePayment(t.Context(), p); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%s for %s: got %v, want %v", p.ID, p.OrderID, err, want)
			}
		}
		want(pays("pi-1", first), nil)
		if _, err := db.PurgeKeys(t.Context(), 0); err != nil { // long ago
			t.Fatal(err)
		}
		want(pays("pi-1", first), nil)
		want(pays("pi-1", second), order.ErrPaymentReused)
		cheap := order.Payment{ID: "pi-0", OrderID: third.ID, Amount: stock.Money{Minor: 1, Currency: "EUR"}}
		want(cheap, order.ErrAmountMismatch)
		want(pays("pi-0", third), order.ErrPaymentReused)
		want(cheap, order.ErrAmountMismatch)
		want(order.Payment{ID: "pi-1", OrderID: first.ID, Amount: stock.Money{Minor: 1, Currency: "EUR"}}, order.ErrPaymentReused)
		want(pays("pi-2", first), order.ErrAlreadyPaid)
		want(pays("pi-2", second), order.ErrPaymentReused)
		b.refunded(t, "pi-2")
		want(pays("pi-2", first), order.ErrAlreadyPaid)
		if lag, err := db.RefundLag(t.Context()); err != nil || lag <= 0 || lag > time.Minute {
			t.Errorf("got %v, %v, want the time since the payment of another amount", lag, err)
		}
		b.refunded(t, "pi-0")
		if lag, err := db.RefundLag(t.Context()); err != nil || lag != 0 {
			t.Errorf("got %v, %v, want nothing left to refund", lag, err)
		}
		b.refunded(t, "pi-9") // before it is reported
		want(pays("pi-9", second), order.ErrAlreadyRefunded)
		want(pays("pi-9", third), order.ErrPaymentReused)
		want(pays("pi-8", second), nil)
		want(pays("pi-9", second), order.ErrAlreadyRefunded)
		// Only a refund that was reported is on record under the shop's own ids.
		if _, err := db.Refunded(t.Context(), order.OwnWord+third.ID); !errors.Is(err, order.ErrNoPayment) {
			t.Errorf("got %v, want no payment of a provider", err)
		}
		if _, err := b.Pay(t.Context(), payment(third)); err != nil {
			t.Error(err)
		}
		b.audit(t, "sku-1")
	})
}

// "Reports of refunds may be repeated and out of order: the last one counts." The list of payments to refund, and the
// time for which they have waited, follow it.
func TestStore_RefundFailed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		b.supply(t, "sku-1", 10)
		o := b.place(t, "key-1", "sku-1", 2)
		for _, id := range []string{"pi-1", "pi-2"} {
			_, _ = b.TakePayment(t.Context(), pays(id, o))
		}
		listed := func(list order.PaymentList, id string) bool {
			_, is := b.payments(t, o, list)[id]
			return is
		}
		for i, madeIt := range []bool{true, true, false, false, true, false} {
			for id, list := range map[string]order.PaymentList{"pi-1": order.RefundedPayments, "pi-2": order.RefusedPayments} {
				report := db.RefundFailed
				if madeIt {
					report = db.Refunded
				}
				p, err := report(t.Context(), id)
				if err != nil || p.ID != id || p.RefundedAt.IsZero() == madeIt || listed(list, id) != (madeIt == (id == "pi-1")) {
					t.Errorf("report %d: got %+v, %v, listed as %s: %v", i, p, err, list, listed(list, id))
				}
			}
			if lag, err := db.RefundLag(t.Context()); err != nil || (lag == 0) != madeIt {
				t.Errorf("report %d: got %v, %v since the payment that is to be refunded", i, lag, err)
			}
		}
		// "the payment is refused, and nothing is left to refund, unless that refund has failed since"
		for _, failed := range []bool{false, true} {
			b.refunded(t, "pi-early")
			if failed {
				if _, err := db.RefundFailed(t.Context(), "pi-early"); err != nil {
					t.Error(err)
				}
			}
			var e *order.Error
			if _, err := b.TakePayment(t.Context(), pays("pi-early", o)); !errors.Is(err, order.ErrAlreadyRefunded) || !errors.As(err, &e) || e.Refund != failed {
				t.Errorf("the refund has failed: %v; got %+v, want already-refunded", failed, err)
			}
		}
		if _, err := db.RefundFailed(t.Context(), "pi-9"); !errors.Is(err, order.ErrNoPayment) {
			t.Errorf("got %v, want no payment", err)
		}
		b.audit(t, "sku-1")
	})
}

// The refund and the payment: "exactly one of the two comes first". The refund is reported before and after the
// transaction has recorded the payment, and at the same moment as the payment. Either the order is paid, and the
// operator sees that its payment was refunded, or the payment is refused, and nothing is left to do.
func TestPayments_raceWithRefund(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		const crowd = 30
		shops := threeShops(t, db)
		b := shops[0]
		place := func(name string) order.Order {
			b.supply(t, name, 10)
			return b.mustPlace(t, buy(name, name, 2))
		}
		wantOneStory := func(o order.Order, answers ...error) (paid bool) {
			t.Helper()
			now := b.find(t, o.ID)
			b.wantPaidOnce(t, o, now)
			p := b.payments(t, o, order.AllPayments)["pi-"+o.ID]
			paid = now.Status == order.Paid
			want := map[bool]string{false: order.ErrAlreadyRefunded.Code}[paid]
			for _, answer := range answers {
				if p.RefundedAt.IsZero() || p.Refusal != want || order.Code(answer) != want || answer != nil && want == "" {
					t.Errorf("got %+v of an order that is %s, answered with %v", p, now.Status, answer)
				}
			}
			return paid
		}
		for _, isFirst := range []bool{true, false} {
			o := place(fmt.Sprint("first-", isFirst))
			var report sync.WaitGroup
			refund := func() { report.Go(func() { b.refunded(t, "pi-"+o.ID) }) }
			b.spy.aroundTx = func(tx order.Tx) order.Tx {
				if isFirst {
					refund()
					if !db.IsSQLite() { // has one writer, the payment
						report.Wait()
					}
					return tx
				}
				return recording{tx, refund}
			}
			_, err := b.TakePayment(t.Context(), pays("pi-"+o.ID, o))
			b.spy.aroundTx = nil
			report.Wait()
			if paid := wantOneStory(o, err); paid != (!isFirst || db.IsSQLite()) {
				t.Errorf("refund comes first %v: got an order that is paid %v", isFirst, paid)
			}
		}
		orders, answers := make([]order.Order, crowd), make([]error, 2*crowd)
		for i := range orders {
			orders[i] = place(fmt.Sprint("sku-", i))
		}
		atOnce(4*crowd, func(i int) {
			o := orders[i/4]
			if i%4 < 2 {
				_, answers[i/4*2+i%4] = shops[i%3].TakePayment(t.Context(), pays("pi-"+o.ID, o))
			} else {
				b.refunded(t, "pi-"+o.ID)
			}
		})
		paid := 0
		for i, o := range orders {
			if wantOneStory(o, answers[2*i:2*i+2]...) {
				paid++
			}
		}
		t.Logf("%d of %d orders are paid", paid, crowd)
	})
}

// recording calls a function when payments are recorded and not yet committed.
type recording struct {
	order.Tx
	then func()
}

func (r recording) RecordPayments(all ...order.Payment) (map[string]order.Payment, []string, error) {
	defer r.then()
	return r.Tx.RecordPayments(all...)
}

// "Extend lets a pending order hold its units for longer, once, while a payment is under way." A replay of the request
// that placed it still shows the first end of the hold.
func TestService_Extend(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		b.supply(t, "sku-1", 10)
		o := b.place(t, "key-1", "sku-1", 2)
		for range 2 {
			later, err := b.Extend(t.Context(), o.ID)
			if want := o.ExpiresAt.Add(order.DefaultHold); err != nil || !later.ExpiresAt.Equal(want) {
				t.Errorf("got %v, %v, want %v", later.ExpiresAt, err, want)
			}
		}
		if replay, replayed, err := b.Place(t.Context(), buy("key-1", "sku-1", 2)); err != nil || !replayed || !replay.ExpiresAt.Equal(o.ExpiresAt) {
			t.Errorf("got %v, replayed %v, %v; want %v", replay.ExpiresAt, replayed, err, o.ExpiresAt)
		}
		if _, err := b.Extend(t.Context(), order.NewID()); !errors.Is(err, order.ErrNotFound) {
			t.Errorf("got %v, want no order", err)
		}
	})
}

// After a restore or a repair, the shop's own payment of a pending order may be on record: the buyer can pay all the same.
func TestService_Pay_ownPaymentOnRecord(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		b.supply(t, "mug", 10)
		o := b.place(t, "key", "mug", 2)
		wantErr(t, "record", db.InTx(t.Context(), func(tx order.Tx) error {
			_, _, err := tx.RecordPayments(o.OwnPayment())
			return err
		}), nil)
		_, err := b.Pay(t.Context(), payment(o))
		wantErr(t, "pay", err, nil)
		b.wantEnd(t, o, order.Paid, "mug", stock.Level{Supplied: 10, Available: 8, Sold: 2})
	})
}
