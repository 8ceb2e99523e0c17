package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/logs/logbook"
	"example.com/shop/loadtest/shopclient"
)

// "repeats an audit until two in a row are alike", for a minute at most.
func TestSettled(t *testing.T) {
	t.Parallel()
	errDown := errors.New("down")
	for name, c := range map[string]struct {
		orders func(ask int64) int64 // that are in the books when they are asked for
		err    error                 // of the third time
		want   int64
		wanted error
	}{
		"at rest":      {func(int64) int64 { return 7 }, nil, 7, nil},
		"two more":     {func(ask int64) int64 { return min(ask, 3) }, nil, 3, nil},
		"never":        {func(ask int64) int64 { return ask }, nil, 0, errUnsettled},
		"out of reach": {func(ask int64) int64 { return ask }, errDown, 0, errDown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, asked := time.Now(), int64(0)
				got, err := settled(func(context.Context) (shopclient.Audit, error) {
					if asked++; asked == 3 && c.err != nil {
						return shopclient.Audit{}, c.err
					}
					return shopclient.Audit{Books: shopclient.Books{Orders: c.orders(asked)}}, nil
				})(t.Context())
				if !errors.Is(err, c.wanted) || (err == nil && got.Books.Orders != c.want) {
					t.Errorf("got %d orders, %v; want %d, %v", got.Books.Orders, err, c.want, c.wanted)
				}
				if took := time.Since(began); took > settleLimit {
					t.Errorf("took %v, want at most %v", took, settleLimit)
				}
			})
		})
	}
}

// An order whose answer was lost reaches the books after the first audit: it
// counts, and whoever leaves a buyer without an answer has not kept its promise.
func TestRun_late_order(t *testing.T) {
	t.Parallel()
	shop := newLab(t, "slow", true)
	shop.silent = true
	var stdout, stderr logbook.Book
	code := run(t.Context(), []string{"--target", shop.URL, "--strategies", "slow", "--buyers", "6", "--stock", "6", "--timeout", "1s", "--json", "-"}, noEnv, &stdout, &stderr)
	s := parseReport(t, stdout.String()).Strategies[0]
	if s.Orders != 6 || s.Acknowledged != 5 || s.Errors != 1 || s.Verdict != "correct" {
		t.Errorf("got %+v, want 6 orders, one of which nobody was told of", s)
	}
	if want := "left buyers without an answer: slow (1 buyer)."; code != 1 || !stderr.Has(want) {
		t.Errorf("got exit code %d, want 1; stderr, want %q in it:\n%s", code, want, stderr.String())
	}
}

// Cancellations that nobody was told of reach the books with the first audit and
// after it: they count, and the books agree with what their buyers find.
func TestRun_late_cancellations(t *testing.T) {
	t.Parallel()
	shop := newLab(t, "slow", true)
	var stdout, stderr logbook.Book
	code := run(t.Context(), []string{"--target", shop.URL, "--strategies", "slow", "--buyers", "2", "--stock", "2", "--cancel", "1", "--json", "-"}, noEnv, &stdout, &stderr)
	s := parseReport(t, stdout.String()).Strategies[0]
	if code != 0 || s.Verdict != "correct" || s.Cancelled != 2 || s.UnitsSold != 0 {
		t.Errorf("got exit code %d, %+v, want it correct with both orders cancelled; stderr:\n%s", code, s, stderr.String())
	}
}
