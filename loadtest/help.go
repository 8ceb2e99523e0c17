package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

const description = `Shows how a shop oversells, and what keeps it from doing so.

For each strategy it starts three instances of the shop on a fresh embedded database, puts 100 units
up for sale, and lets 1,000 buyers buy at the same moment over HTTP. Then it counts.`

const lessons = `
Examples:
  go run ./loadtest                                   none, mutex and redis, compared
  go run ./loadtest --strategies mutex --instances 1  a mutex is enough for one instance
  go run ./loadtest --strategies none --think 0s      it oversells without a pause, too
  go run ./loadtest --strategies all --buyers 5000    everything that the shop can do
  go run ./loadtest --json -                          for programs
  go run ./loadtest --mysql 'shop:secret@tcp(127.0.0.1:3306)/shop' --redis 127.0.0.1:6379
  go run ./loadtest --target http://localhost:8080    a shop that runs: shop serve --lab

The columns:
  supplied   units that were put up for sale
  orders     orders that the shop's audit found after the race, of one unit each
  oversold   units in orders beyond those supplied; counted from orders, because a lost update
             oversells while the stock column reads zero
  undersold  units in no order although buyers went away without one
  refused    buyers who were told that it is sold out
  errors     buyers with another answer, or none after several tries
  orders/s   orders per second, from the moment all buyers were let go to the last answer
  p50, p99   how long half, and 99 of 100, of the buyers waited, from that same moment: a buyer who
             stood in a queue waited too
  verdict    correct; oversold; undersold; or inconsistent: neither, but the shop's books disagree
             with themselves or with what the buyers were told

The JSON of --json has one of these four words as "verdict".

Exit code: 0 if every strategy that promises to be correct was and left no buyer without an answer
(errors 0), 1 if one did not or the test could not be done, 2 if the flags make no sense. That 'none'
and 'mutex' oversell is what they are for.
`

func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	_, err := fmt.Fprint(ctx.Stdout, lessons)
	return err
}
