package main

import (
	"time"

	"example.com/shop/loadtest/peers/measure"
)

// contest is one case of the comparison: a load, or one of two kinds of its own.
type contest struct {
	name, about string
	kind        kind
	load        measure.Load
}

type kind int

const (
	throughput kind = iota
	wakeUp
	idling
)

func contests() []contest {
	const hold = time.Millisecond
	return []contest{
		{"one", "nobody else wants the key: 1 goroutine", throughput, measure.Load{Clients: 1, Goroutines: 1, Keys: 1}},
		{"keys", "64 goroutines of one client, each on its own key", throughput, measure.Load{Clients: 1, Goroutines: 64, Keys: 64}},
		{"hot", "64 goroutines of one client on one key", throughput, measure.Load{Clients: 1, Goroutines: 64, Keys: 1}},
		{"spread", "4 clients x 16 goroutines on one key", throughput, spread(0)},
		{"hold", "4 clients x 16 goroutines on one key, held for 1 ms", throughput, spread(hold)},
		{"wake", "one client releases, a waiter of another gets the key", wakeUp, measure.Load{}},
		{"idle", "one client holds, a waiter of another waits: what MONITOR sees", idling, measure.Load{}},
	}
}

// spread is contention between processes.
func spread(hold time.Duration) measure.Load {
	return measure.Load{Clients: 4, Goroutines: 16, Keys: 1, Hold: hold}
}
