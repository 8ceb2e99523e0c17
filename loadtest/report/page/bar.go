package page

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/report"
)

// bar shows units sold against units supplied. All bars have one scale.
type bar struct {
	Label  string
	Supply percent // where the line of the supply is
	Sold   percent // of what was there
	Over   percent // of what was not
	Text   string
}

// newBar leaves room at the right for the line of the supply.
func newBar(s report.Strategy, most int64) bar {
	const room = 0.99
	text := fmt.Sprintf("%s sold of %s", humanize.Comma(s.UnitsSold), humanize.Comma(s.Supplied))
	return bar{
		Label:  s.Name + ": units " + text + ", " + verdict(s).Text,
		Supply: room * share(s.Supplied, most),
		Sold:   room * share(max(0, s.UnitsSold-s.Oversold), most),
		Over:   room * share(s.Oversold, most),
		Text:   text,
	}
}
