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

// Offers returns the ways to sell that a shop may use, the default first: each is correct with any number of instances.
// lanes is the strategy of that name, locker the lock that the instances share.
func Offers(shop Shop, lanes order.Strategy, locker Locker) []order.Offer {
	offers := []order.Offer{
		{Name: "redis", Strategy: Redis{shop, locker}},
		{Name: "conditional", Strategy: Conditional{shop}},
		{Name: "optimistic", Strategy: Optimistic{shop}},
		{Name: "for-update", Strategy: ForUpdate{shop}},
	}
	for i, o := range offers {
		offers[i].Strategy = order.Replaying{Store: shop.Store, Next: o.Strategy}
	}
	return append([]order.Offer{{Name: "lanes", Strategy: lanes}}, offers...) // a lane replays by itself, with one query for a batch
}
