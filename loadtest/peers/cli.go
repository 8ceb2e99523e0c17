package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"example.com/shop/loadtest/peers/peer"
)

// flags are what the user chose.
type flags struct {
	redis   string
	rounds  int
	time    time.Duration
	cases   []contest
	peers   []peer.Peer
	turns   int
	json    string
	profile string
}

// parse returns the flags, an errUsage that names the flag that is wrong, or
// flag.ErrHelp when help was asked for and shown.
func parse(args []string, stdout io.Writer) (flags, error) {
	var f flags
	var cases, peers string
	set := flag.NewFlagSet("peers", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.redis, "redis", "", "")
	set.IntVar(&f.rounds, "rounds", 5, "")
	set.DurationVar(&f.time, "time", 2*time.Second, "")
	set.StringVar(&cases, "cases", "all", "")
	set.StringVar(&peers, "peers", "", "")
	set.IntVar(&f.turns, "turns", 0, "")
	set.StringVar(&f.json, "json", "", "")
	set.StringVar(&f.profile, "profile", "", "")
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stdout, usage())
		return f, err
	case err != nil:
		return f, fmt.Errorf("%w: %w", errUsage, err)
	case set.NArg() > 0:
		return f, fmt.Errorf("%w: %q: want flags only", errUsage, set.Arg(0))
	case f.rounds < 1 || f.rounds > 1000:
		return f, fmt.Errorf("%w: -rounds %d: want 1 to 1000", errUsage, f.rounds)
	case f.time < 10*time.Millisecond || f.time > time.Hour:
		return f, fmt.Errorf("%w: -time %v: want 10ms to 1h", errUsage, f.time)
	case f.turns < 0:
		return f, fmt.Errorf("%w: -turns %d: want 0 for the comparison, or more for the soak", errUsage, f.turns)
	}
	if peers == "" {
		peers = "all"
		if f.turns > 0 {
			peers = peer.Ours
		}
	}
	if f.cases, err = choose("cases", cases, contests(), func(c contest) string { return c.name }); err != nil {
		return f, err
	}
	f.peers, err = choose("peers", peers, peer.All(), func(p peer.Peer) string { return p.Name })
	return f, err
}

// choose returns those of all that a list names, in the order of all.
func choose[T any](name, list string, all []T, nameOf func(T) string) ([]T, error) {
	if list == "all" {
		return all, nil
	}
	wanted := strings.Split(list, ",")
	var chosen []T
	var known []string
	for _, v := range all {
		known = append(known, nameOf(v))
		if slices.Contains(wanted, nameOf(v)) {
			chosen = append(chosen, v)
		}
	}
	for _, w := range wanted {
		if !slices.Contains(known, w) {
			return nil, fmt.Errorf("%w: -%s %q: want some of %s, or all", errUsage, name, w, strings.Join(known, ","))
		}
	}
	return chosen, nil
}
