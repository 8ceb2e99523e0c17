package strategy

import (
	"embed"

	"example.com/shop/internal/order"
)

// SharedLock is the name of the lock that all instances of a shop share.
const SharedLock = "redis"

// Sources are the files of this package, to be shown in lessons.
//
//go:embed *.go
var Sources embed.FS

// Names are the strategies that a shop may sell by, the default first: each is correct with any number of instances.
func Names() []string {
	return []string{"lanes", "batch", "redis", "conditional", "optimistic", "for-update"}
}

// New returns the strategy with one of these names. seller, of package batch, is lanes if it has a Locker, and batch if it
// has none; locker takes the lock that all instances share.
func New(name string, shop Shop, seller order.Strategy, locker Locker) order.Strategy {
	next, single := map[string]order.Strategy{
		"redis": Redis{shop, locker}, "conditional": Conditional{shop}, "optimistic": Optimistic{shop}, "for-update": ForUpdate{shop},
	}[name]
	if !single {
		return seller // which replays by itself
	}
	return order.Replaying{Store: shop.Store, Next: next}
}
