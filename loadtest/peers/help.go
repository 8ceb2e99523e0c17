package main

import (
	"fmt"
	"strings"

	"example.com/shop/loadtest/peers/peer"
)

const flagHelp = `Usage: go run . [flags]          in loadtest/peers, or: go -C loadtest/peers run . [flags]

Compares internal/lock with other lock libraries, and with bare Redis commands, on one Redis in one
run. The peers take turns, round after round, in rotating order; the figures are medians over the
rounds. Ratios are taken within each round, so that a slow moment of the machine counts for all.

Flags:
  -redis ADDR     use this Redis, host:port. Without it one is started and stopped: a redis-server
                  process, or without that program a container of $SHOP_TEST_REDIS_IMAGE
  -rounds N       rounds for each case, 1 to 1000 (default 5)
  -time D         for each peer in each round, 10ms to 1h (default 2s)
  -cases LIST     names with commas between (default all)
  -peers LIST     names with commas between (default all)
  -turns N        no comparison but a soak: N turns, 4 clients x 16 goroutines on one key, by ours or
                  by those of -peers. We promise 1000000 without a hang
  -json FILE      write all rounds as JSON too; '-' for stdout, everything else then goes to stderr
  -profile DIR    write cpu.pprof and allocs.pprof of the whole run there; use one case and one peer
`

const columnHelp = `
The columns:
  turns/s        a turn is an acquisition and its release
  to raw         the ratio to raw
  to fastest     the ratio to the fastest of the libraries other than ours
  longest wait   for an acquisition, in any round, and also of those who got theirs after the time
  most/least     turns of the client that got the most and of the one that got the least (of one
                 client's goroutines, where there is one client), in the least fair round
  right          yes, or what went wrong: overlaps (two inside at once), lost updates of a counter
                 that the lock guards, errors, a hang

The polling peers ask every 1 ms. At their defaults they are slower.

A hang is 15 s in which no turn ends although nobody else is at work; leases last 10 s, so that one
that was merely lost has run out by then. The peer is cancelled and the run goes on. A round in which
a peer hung does not count for turns/s and the ratios, which would make it look slower than it is.

Exit code: 0 if ours excluded every time without a hang or an error, 1 if it did not or the
comparison could not be done, 2 if the flags make no sense. What the others did changes nothing, and
no time that was measured does.
`

// usage is the text of --help.
func usage() string {
	var b strings.Builder
	b.WriteString(flagHelp)
	b.WriteString("\nThe cases:\n")
	for _, c := range contests() {
		fmt.Fprintf(&b, "  %-14s %s\n", c.name, c.about)
	}
	b.WriteString("\nThe peers:\n")
	for _, p := range peer.All() {
		fmt.Fprintf(&b, "  %-14s %s\n", p.Name, p.About)
	}
	b.WriteString(columnHelp)
	return b.String()
}
