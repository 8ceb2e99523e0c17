package main

import (
	"fmt"
	"strings"
)

const description = `Measures how many orders a second the shop sells over HTTP, by each strategy and beside a handler that does nothing.

Three shop processes, one database, one Redis, one run. In each case the strategies take turns, round after round, in rotating order. Figures are medians over the rounds; ratios are taken within each round first, so that a slow moment of the machine counts for all.`

const lessons = `
Examples:
  make bench-sale                                    everything, on SQLite: 5 to 8 minutes
  make bench-sale FLAGS='--database mysql'           the same on MySQL
  go run ./loadtest/sale --quick                     a look, about a minute
  go run ./loadtest/sale --database mysql            in a container, each commit flushed to disk
  go run ./loadtest/sale --database mysql --mysql 'shop:secret@tcp(127.0.0.1:3306)/shop' --redis 127.0.0.1:6379
  go run ./loadtest/sale --cases hot-64,soldout --strategies lanes,redis --rounds 5 --time 3s
  go run ./loadtest/sale --json sale.json            all rounds, for programs

The columns:
  orders/s    orders placed per second; the answers of nothing stand here, too
  refused/s   orders refused per second because the SKU was sold out
  to X        orders and refusals per second, as a multiple of X's; in lone, p50 as a multiple of X's
  p50, p99    how long half, and 99 of 100, of the orders took; errors included
  errors      orders with another answer or none, in all rounds
  client,     how much of the machine's processor time the buyers took, and the shops: what is left
  shops       went to the database, Redis and whatever else the machine did
  idle, peak  in grow: memory of the one shop before the buyers came, and at most while they waited
  a buyer     in grow, from 1,000 buyers on: the difference, per buyer, with its connection
  right       yes, or NO, and what is wrong below. After each round the shop's audit must be clean, and
              count as many orders as were acknowledged (and, after an unknown outcome, at most one
              more for each)

The images of containers are those of the tests: SHOP_TEST_MYSQL_IMAGE, SHOP_TEST_MARIADB_IMAGE and
SHOP_TEST_REDIS_IMAGE name others than mysql:9, mariadb:10.11 and redis:8.

Exit code: 0 if every row is right, 1 if one is not or the benchmark could not be done, 2 if the flags
make no sense. No time that was measured changes it.
`

// lesson is what stands below the flags.
func lesson() string {
	var b strings.Builder
	b.WriteString("\nThe cases:\n")
	for _, c := range contests(false) {
		fmt.Fprintf(&b, "  %-10s  %s\n", c.name, c.about)
	}
	b.WriteString(lessons)
	return b.String()
}
