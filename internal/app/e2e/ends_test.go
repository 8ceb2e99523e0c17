package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"example.com/shop/internal/app"
)

// payAgainstExpiry: 60 payments leave around the instants at which their orders expire, from 80 ms before to 38 ms
// after. Each order ends as exactly one of the two, and its buyer is told which.
func payAgainstExpiry(t *testing.T, k kind) {
	const orders = 60
	s := k.open(t, func(_ int, settings *app.Settings) {
		settings.PayWithin, settings.SweepEvery = time.Second, 5*time.Millisecond
	})
	s.create(0, "mug", orders)
	type purchase struct {
		answer
		heard time.Time
	}
	placed := atOnce(orders, func(i int) purchase {
		return purchase{s.buy(i, buyer(i), "key-1", "1 mug"), time.Now()}
	})
	// How far the clock here is ahead of the shop's, and the way of the fastest answer.
	ahead := time.Hour
	for _, p := range placed {
		ahead = min(ahead, p.heard.Sub(p.want(t, http.StatusCreated).order(t).CreatedAt))
	}
	payments := atOnce(orders, func(i int) answer {
		o := placed[i].order(t)
		spread := time.Duration(i-40) * 2 * time.Millisecond
		<-time.After(time.Until(o.ExpiresAt.Add(ahead + spread)))
		return s.end(i+1, o.Buyer, o.ID, "pay", "")
	})
	ends := map[string]int{}
	for i, a := range payments {
		o := placed[i].order(t)
		want := "paid"
		if a.status != http.StatusOK {
			a.wantRefusal(t, "expired")
			want = "expired"
		}
		s.awaitStatus(i+2, o.Buyer, o.ID, want) // a sweeper may have yet to come by
		ends[want]++
	}
	t.Logf("%d paid, %d expired", ends["paid"], ends["expired"])
	s.wantBooks(2)
}

// payAgainstCancel: both leave at the same moment, to two instances. One wins, and the other is told which.
func payAgainstCancel(t *testing.T, k kind) {
	const orders = 30
	s := k.open(t, nil)
	s.create(0, "mug", orders)
	placed := atOnce(orders, func(i int) answer { return s.buy(i, buyer(i), "key-1", "1 mug") })
	for i, p := range placed {
		o := p.want(t, http.StatusCreated).order(t)
		ways := []struct{ how, state string }{{"pay", "paid"}, {"cancel", "cancelled"}}
		answers := atOnce(2, func(way int) answer { return s.end(i+way, o.Buyer, o.ID, ways[way].how, "") })
		won := 0
		if answers[0].status != http.StatusOK {
			won = 1
		}
		answers[won].want(t, http.StatusOK)
		answers[1-won].wantRefusal(t, ways[won].state)
	}
	s.wantBooks(2)
}

// buyer names one.
func buyer(i int) string { return fmt.Sprintf("buyer-%d", i) }
