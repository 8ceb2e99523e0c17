package strategy

import (
	"embed"
	"fmt"
	"strings"

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
func New(name string, shop Shop, seller order.Strategy, locker Locker) (order.Strategy, error) {
	var next order.Strategy
	switch name {
	case "lanes", "batch":
		return seller, nil // which replays by itself
	case "redis":
		next = Redis{shop, locker}
	case "conditional":
		next = Conditional{shop}
	case "optimistic":
		next = Optimistic{shop}
	case "for-update":
		next = ForUpdate{shop}
	default:
		return nil, fmt.Errorf("strategy %.80q: want one of %s", name, strings.Join(Names(), ", "))
	}
	return order.Replaying{Store: shop.Store, Next: next}, nil
}
