// Peers compares internal/lock with other lock libraries, and with bare Redis commands, on one Redis in one run.
// README.md explains the method and the value of the figures.
//
// peer.go has an adapter for each library; load.go has the cases and the measurement.
package main

import (
	"cmp"
	"context"
	"errors"
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

	"github.com/alecthomas/kong"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/testserver" //nolint:depguard // as loadtest bench does
	"example.com/shop/loadtest/stats"
)

// settings are the user's choices.
type settings struct {
	Redis  string        `placeholder:"ADDR" help:"Use the Redis at this host:port. Without this flag, a container of $$SHOP_TEST_REDIS_IMAGE is started."`
	Cases  []string      `default:"one,deadline,keys,hot,spread,hold,cart" enum:"one,deadline,keys,hot,spread,hold,cart" help:"Cases to run."`
	Peers  []string      `default:"raw,redsync,redislock,rueidislock,ours" enum:"raw,redsync,redislock,rueidislock,ours" help:"Peers to compare."`
	Rounds int           `default:"5" help:"Rounds of each case."`
	Time   time.Duration `default:"2s" help:"How long to measure each peer in each round."`
}

// Validate returns an error if the flags make no sense. kong calls it.
func (s *settings) Validate() error {
	if s.Rounds < 1 || s.Time < 10*time.Millisecond {
		return errors.New("want --rounds of at least 1, and a --time of at least 10ms")
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second Ctrl-C ends the program without the clean-up
	var s settings
	parsed := kong.Parse(&s, kong.Name("peers"), kong.Description("Compares the shop's lock with other lock libraries."))
	parsed.FatalIfErrorf(s.run(ctx, parsed.Stdout))
}

// run is the whole program. It fails if our lock had two holders at once, hung or failed.
func (s *settings) run(ctx context.Context, out io.Writer) error {
	if s.Redis == "" {
		server, err := testserver.OpenRedis(ctx)
		if err != nil {
			return fmt.Errorf("%w; without Docker, give a server with --redis", err)
		}
		defer func() { _ = server.Close() }()
		s.Redis = server.Addr()
	}
	client := redis.NewClient(&redis.Options{Addr: s.Redis, MaxRetries: -1, ReadTimeout: time.Minute})
	defer func() { _ = client.Close() }()
	info, err := client.InfoMap(ctx, "Server").Result()
	if err != nil {
		return fmt.Errorf("redis at %s: %w", s.Redis, err)
	}
	fmt.Fprintf(out, "%d cores, %s/%s, %s\nRedis %s\nrounds: %d, with %v for each peer\n", runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH,
		runtime.Version(), info["Server"]["redis_version"], s.Rounds, s.Time)
	peers := slices.DeleteFunc(allPeers(), func(p peer) bool { return !slices.Contains(s.Peers, p.name) })
	var broken error
	for _, l := range allLoads() {
		if !slices.Contains(s.Cases, l.name) {
			continue
		}
		r := &result{load: l, peers: peers, rows: map[string][]round{}}
		if err := r.compare(ctx, s, client); err != nil {
			return err
		}
		r.print(out)
		if verdict(r.rows[ours]) != right {
			broken = errors.New("a promise was broken: see ours above")
		}
	}
	return broken
}

// result is a case with its rounds.
type result struct {
	load
	peers []peer
	rows  map[string][]round // by the peer's name
}

// compare lets the peers take turns, round after round, in rotating order.
func (r *result) compare(ctx context.Context, s *settings, client *redis.Client) error {
	for n := range s.Rounds {
		for i := range r.peers {
			p := r.peers[(i+n)%len(r.peers)]
			runtime.GC() // so that a peer does not pay for the garbage of the one before
			key := fmt.Sprintf("peers:%d:%s:%s", time.Now().UnixNano(), r.name, p.name)
			before, err := processed(ctx, client)
			if err != nil {
				return err
			}
			one, err := r.run(ctx, p, s.Redis, key, s.Time)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			after, err := processed(ctx, client)
			if err != nil {
				return err
			}
			one.commands = after - before
			r.rows[p.name] = append(r.rows[p.name], one)
		}
	}
	return nil
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
	fastest := r.fastest()
	for _, p := range r.peers {
		rounds, rates := r.rows[p.name], r.rates(p.name)
		longest := slices.Max(stats.Each(rounds, func(one round) time.Duration { return one.longest }))
		commands := stats.Median(stats.Each(rounds, func(one round) float64 { return one.commands / max(1, one.turns) }))
		gap := "-"
		if d := stats.Median(stats.Each(rounds, func(one round) time.Duration { return one.gap })); d > 0 {
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

// rates returns a peer's turns per second in each round, or 0 if it hung.
func (r *result) rates(name string) []float64 {
	return stats.Each(r.rows[name], func(one round) float64 { return one.perSecond })
}

// fastest returns the rates of the fastest library other than ours.
func (r *result) fastest() (best []float64) {
	for _, p := range r.peers {
		if rates := r.rates(p.name); p.name != ours && p.name != raw && typical(rates) > typical(best) {
			best = rates
		}
	}
	return best
}

// typical returns the median of the rounds in which the peer did not hang.
func typical(rates []float64) float64 {
	return stats.Median(slices.DeleteFunc(slices.Clone(rates), func(r float64) bool { return r == 0 }))
}

// right is the verdict on rounds without a problem.
const right = "yes"

// verdict returns right, or the problem of all rounds.
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
	return right
}
