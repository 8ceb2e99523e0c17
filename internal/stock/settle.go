package stock

// Settle returns what the end of a reservation of so many units adds to each
// count: a Sell moves them to Sold, a Release back to Available.
func Settle(kind Kind, units int64) Level {
	if kind == Sell {
		return Level{Reserved: -units, Sold: units}
	}
	return Level{Reserved: -units, Available: units}
}
