// Peers compares internal/lock with other lock libraries, and with bare Redis commands, on one Redis in one run. README.md
// explains the method and the value of the figures.
//
// peer.go has an adapter for each library; load.go has the cases and the measurement.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/testserver" //nolint:depguard // as loadtest bench does
	"example.com/shop/loadtest/stats"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second Ctrl-C ends the program without the clean-up
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "peers: %v\n", err)
		os.Exit(1)
	}
}

// errBroken means that our lock had two holders at once, hung or failed.
var errBroken = errors.New("a promise was broken: see ours above")

// settings are the user's choices.
type settings struct {
	redis  string
	rounds int
	time   time.Duration
	loads  []load
	peers  []peer
}

func parse(args []string, out io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.redis, "redis", "", "use the Redis at this `host:port`; without this flag, a container of $SHOP_TEST_REDIS_IMAGE is started")
	flags.IntVar(&s.rounds, "rounds", 5, "rounds of each case")
	flags.DurationVar(&s.time, "time", 2*time.Second, "how long to measure each peer in each round")
	cases := flags.String("cases", "all", "cases, separated by commas: one, deadline, keys, hot, spread, hold, cart")
	peers := flags.String("peers", "all", "peers, separated by commas: raw, redsync, redislock, rueidislock, ours")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.time < 10*time.Millisecond || flags.NArg() > 0 {
		return s, errors.New("want -rounds of at least 1, a -time of at least 10ms, and flags only: see -help")
	}
	if s.loads, err = choose(*cases, allLoads(), func(l load) string { return l.name }); err != nil {
		return s, err
	}
	s.peers, err = choose(*peers, allPeers(), func(p peer) string { return p.name })
	return s, err
}

// choose returns the elements that a list names.
func choose[T any](list string, all []T, name func(T) string) (chosen []T, err error) {
	if list == "all" {
		return all, nil
	}
	for wanted := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(v T) bool { return name(v) == wanted })
		if i < 0 {
			return nil, fmt.Errorf("%q is unknown: see -help", wanted)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// run is the whole program.
func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args, out)
	if err != nil {
		return err
	}
	if s.redis == "" {
		server, err := testserver.OpenRedis(ctx)
		if err != nil {
			return fmt.Errorf("%w; without Docker, give a server with -redis", err)
		}
		defer func() { _ = server.Close() }()
		s.redis = server.Addr()
	}
	client := redis.NewClient(&redis.Options{Addr: s.redis, MaxRetries: -1, ReadTimeout: time.Minute})
	defer func() { _ = client.Close() }()
	info, err := client.InfoMap(ctx, "Server").Result()
	if err != nil {
		return fmt.Errorf("redis at %s: %w", s.redis, err)
	}
	fmt.Fprintf(out, "%d cores, %s/%s, %s\nRedis %s\nrounds: %d, with %v for each peer\n", runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH,
		runtime.Version(), info["Server"]["redis_version"], s.rounds, s.time)
	right := true
	for _, l := range s.loads {
		r, err := compare(ctx, s, client, l)
		if err != nil {
			return err
		}
		r.print(out)
		right = right && !slices.ContainsFunc(r.rows[ours], func(r round) bool { return !r.right() })
	}
	if !right {
		return errBroken
	}
	return nil
}

// result is a case with its rounds.
type result struct {
	load
	peers []peer
	rows  map[string][]round // by the peer's name
}

// compare lets the peers take turns, round after round, in rotating order.
func compare(ctx context.Context, s settings, client *redis.Client, l load) (*result, error) {
	r := &result{load: l, peers: s.peers, rows: map[string][]round{}}
	for n := range s.rounds {
		for i := range s.peers {
			p := s.peers[(i+n)%len(s.peers)]
			runtime.GC() // so that a peer does not pay for the garbage of the one before
			key := fmt.Sprintf("peers:%d:%s:%s", time.Now().UnixNano(), l.name, p.name)
			before, err := processed(ctx, client)
			if err != nil {
				return nil, err
			}
			one, err := l.run(ctx, p, s.redis, key, s.time)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return nil, err
			}
			after, err := processed(ctx, client)
			if err != nil {
				return nil, err
			}
			one.commands = after - before
			r.rows[p.name] = append(r.rows[p.name], one)
		}
	}
	return r, nil
}

// processed returns the number of commands that the server has processed.
func processed(ctx context.Context, client *redis.Client) (float64, error) {
	info, err := client.InfoMap(ctx, "Stats").Result()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(info["Stats"]["total_commands_processed"], 64)
}

// print writes the table of the case. Commands and gap are the medians of the rounds.
func (r *result) print(out io.Writer) {
	var rows []table.Row
	fastest := r.rates(r.fastest())
	for _, p := range r.peers {
		rounds, rates := r.rows[p.name], r.rates(p.name)
		longest := slices.Max(figures(rounds, func(one round) time.Duration { return one.longest }))
		commands := stats.Median(figures(rounds, func(one round) float64 { return one.commands / max(1, one.turns) }))
		gap := "-"
		if d := stats.Median(figures(rounds, func(one round) time.Duration { return one.gap })); d > 0 {
			gap = d.Round(time.Microsecond).String()
		}
		rows = append(rows, table.Row{
			p.name, fmt.Sprintf("%.0f", typical(rates)), stats.Ratio(rates, r.rates(raw)), stats.Ratio(rates, fastest),
			longest.Round(10 * time.Microsecond), fmt.Sprintf("%.2f", commands), gap, verdict(rounds),
		})
	}
	header := table.Row{"peer", "turns/s", "to raw", "to fastest", "longest wait", "commands/turn", "gap", "right"}
	fmt.Fprintf(out, "\n%s: %s\n%s", r.name, r.about, stats.Table(header, rows, 2, len(header)-1))
}

// figures returns one figure of each round.
func figures[T any](rounds []round, figure func(round) T) []T {
	var all []T
	for _, one := range rounds {
		all = append(all, figure(one))
	}
	return all
}

// rates returns a peer's turns per second in each round, or 0 if it hung.
func (r *result) rates(name string) []float64 {
	return figures(r.rows[name], func(one round) float64 { return one.perSecond })
}

// fastest returns the name of the fastest library other than ours.
func (r *result) fastest() string {
	name, best := "", 0.0
	for _, p := range r.peers {
		if rate := typical(r.rates(p.name)); rate > best && p.name != ours && p.name != raw {
			name, best = p.name, rate
		}
	}
	return name
}

// typical returns the median of the rounds in which the peer did not hang.
func typical(rates []float64) float64 {
	return stats.Median(slices.DeleteFunc(slices.Clone(rates), func(r float64) bool { return r == 0 }))
}

// verdict returns yes, or the problem of all rounds.
func verdict(rounds []round) string {
	var overlaps int64
	var err error
	for _, r := range rounds {
		overlaps, err = overlaps+r.overlaps, cmp.Or(err, r.err)
	}
	switch {
	case overlaps > 0:
		return fmt.Sprintf("NO: %d overlaps", overlaps)
	case err != nil:
		return strings.ReplaceAll(err.Error(), "\n", ", ")
	}
	return "yes"
}
