package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/web"
)

// raceCommand holds one race per strategy.
type raceCommand struct {
	Strategies []string `default:"none,mutex,redis" help:"Ways to sell, one race each; 'all' for every one that the shop knows, and wrong ones that their race does not catch are then played step by step."`
	Buyers     int      `default:"1000" help:"Buyers who all want one unit at the same moment (1 to 100000); with --rate, how many of them can wait for an answer at a time."`
	Stock      int64    `default:"100" help:"Units of each SKU for sale in each race (1 to 1000000000)."`

	Rate     *float64       `placeholder:"N" help:"Open model: so many orders per second are due, at random moments that do not depend on each other (Poisson), however slow the shop is. Waits count from the moment an order is due. One that finds all --buyers waiting for an answer is not sent and counts as an error. Needs --duration or --requests (0.1 to 20000)."`
	Duration *time.Duration `placeholder:"D" help:"Let buyers order for so long (100ms to 10m): with --rate when orders are due, without it each again as soon as there is an answer (closed model, in which a slow shop has fewer orders to answer)."`
	Requests *int           `placeholder:"N" help:"End after so many orders in all, sent as with --duration, whichever comes first (1 to 1000000, which is the limit without it, too)."`
	SKUs     int            `name:"skus" default:"1" help:"SKUs for sale, with --stock units of each (1 to 100)."`
	Skew     float64        `default:"0" help:"How much more the first SKUs are wanted: the k-th in proportion to 1/k^skew (Zipf); 0 is all alike (0 to 5)."`
	Lines    int            `default:"1" help:"SKUs in an order: each is a cart of 1 to so many, one unit of each (1 to 20)."`
	Cancel   float64        `default:"0" help:"Share of the orders placed that their buyers cancel again (0 to 1)."`
	Retry    float64        `default:"0" help:"Share of the orders placed that are sent a second time with the same key, and must come out as one order (0 to 1)."`

	Instances *int          `placeholder:"N" help:"Shop instances to start (1 to 16); 3 if not given."`
	Think     time.Duration `default:"2ms" help:"Pause of the shop between reading stock and writing it (0s to 1s). It stands for the work of a real shop, and is why a race shows on every run."`

	serverFlags

	Target  string        `placeholder:"URL" help:"Start nothing; race in a running 'shop serve --lab', or a load balancer in front of several. A race in which orders expire is not judged: see --pay-within there."`
	UI      *string       `name:"ui" placeholder:"ADDR" help:"Open the lab in a browser instead: host:port, as in 127.0.0.1:8090. Without a host, this machine alone reaches it. Other flags pre-fill the form."`
	JSON    string        `name:"json" placeholder:"FILE" help:"Write the report as JSON too; '-' for stdout, everything else then goes to stderr."`
	HTML    string        `name:"html" placeholder:"FILE" help:"Write the report as one HTML file too, with charts and the timeline of the race; it opens without a network."`
	SVG     string        `name:"svg" placeholder:"FILE" help:"Write the bars of the report, units sold against units supplied, as an SVG file too."`
	Timeout time.Duration `default:"2m" help:"Time limit per race; with --duration, for answers after it ends (1s to 1h). Buyers without an answer by then count as errors."`
}

// Limits of what can be asked for.
const (
	maxBuyers   = 100_000
	maxRequests = 1_000_000 // of a race: each order placed is remembered
	maxTimeout  = time.Hour
)

const raceAbout = `Shows how a shop oversells, and what keeps it from doing so.

For each strategy it starts three instances of the shop on a fresh embedded database, puts 100 units
up for sale, and lets 1,000 buyers buy at the same moment over HTTP. Then it counts.

'loadtest step' plays two buyers against each other, step by step, and 'loadtest compare' sets two
reports side by side. Each has a --help of its own.`

// Footer stands below the flags in the help.
func (raceCommand) Footer() string {
	var b strings.Builder
	b.WriteString(`
Examples:
  go run ./loadtest                                   none, mutex and redis, compared
  go run ./loadtest --strategies mutex --instances 1  a mutex is enough for one instance
  go run ./loadtest --strategies none --think 0s      it oversells without a pause, too
  go run ./loadtest --strategies all --buyers 5000    everything that needs no server
  go run ./loadtest --strategies all --servers docker everything, on servers in containers
  go run ./loadtest --html report.html                with charts and the timeline of the race
  go run ./loadtest --ui 127.0.0.1:8090               in the browser: choose, run and watch
  go run ./loadtest --json -                          for programs
  go run ./loadtest --mysql 'shop:secret@tcp(127.0.0.1:3306)/shop' --redis 127.0.0.1:6379
  go run ./loadtest --target http://localhost:8080    a shop that runs: shop serve --lab
  go run ./loadtest --rate 200 --duration 10s         open model: orders come whatever the shop does
  go run ./loadtest --requests 5000 --buyers 50       closed model: each orders again when answered
  go run ./loadtest --skus 20 --skew 1.1 --lines 3 --cancel 0.1 --retry 0.2   a shop's daily mix
  go run ./loadtest compare before.json after.json    two reports of --json (compare --help)
  go run ./loadtest step all                          why: two buyers, step by step (step --help)

The columns:
`)
	for _, c := range result.Columns(result.Terminal) {
		hang(&b, "  "+c.Name, 13, c.Help)
	}
	hang(&b, "  verdict", 13, "correct; oversold; undersold; or inconsistent: neither, but the shop's books disagree with themselves or with what the buyers were told. The JSON has one of these four words. A strategy that is broken on purpose and looked correct is shown as not caught")
	b.WriteString(`
With --rate, --duration or --requests, read orders for buyers here and below the table: a buyer may
send many. A strategy without its server is listed below the table, and in the JSON as "not_run".

Exit code: 0 if every strategy that is designed to be correct was, and left no buyer without an
answer (errors 0), 1 if one did not or the test could not be done, 2 if the flags make no sense.
That 'none' and 'mutex' oversell is what they are for. Some wrong ones need a crash or a pause at
the wrong moment and look correct in a race.
`)
	return b.String()
}

// Validate returns a flagError for the first flag that asks for too much, too little or
// what another flag excludes.
func (c *raceCommand) Validate() error {
	n, rate, duration, requests := c.instances(), value(c.Rate), value(c.Duration), value(c.Requests)
	for _, check := range []struct {
		wrong bool
		flagError
	}{
		{c.Buyers < 1 || c.Buyers > maxBuyers, flagError{"buyers", c.Buyers, "want 1 to 100000"}},
		{c.Stock < 1 || c.Stock > 1_000_000_000, flagError{"stock", c.Stock, "want 1 to 1000000000"}},
		{n < 1 || n > 16, flagError{"instances", n, "want 1 to 16"}},
		{c.Think < 0 || c.Think > time.Second, flagError{"think", c.Think, "want 0s to 1s"}},
		{c.Timeout < time.Second || c.Timeout > maxTimeout, flagError{"timeout", c.Timeout, "want 1s to 1h"}},
		{c.Rate != nil && !(rate >= 0.1 && rate <= 20_000), flagError{"rate", rate, "want 0.1 to 20000 orders per second"}},
		{c.Rate != nil && c.Duration == nil && c.Requests == nil, flagError{"rate", nil, "say when it ends, with --duration or --requests"}},
		{c.Duration != nil && (duration < 100*time.Millisecond || duration > 10*time.Minute), flagError{"duration", duration, "want 100ms to 10m"}},
		{c.Requests != nil && (requests < 1 || requests > maxRequests), flagError{"requests", requests, "want 1 to 1000000"}},
		{c.Requests == nil && rate*duration.Seconds() > maxRequests, flagError{"rate", rate, fmt.Sprintf("for --duration %v: want at most 1000000 orders in all", duration)}},
		{c.Duration == nil && float64(requests) > 0.9*c.Timeout.Seconds()*rate && c.Rate != nil,
			flagError{"requests", requests, fmt.Sprintf("at --rate %v these take too long for --timeout %v: raise it, or say --duration", rate, c.Timeout)}},
		{c.SKUs < 1 || c.SKUs > 100, flagError{"skus", c.SKUs, "want 1 to 100"}},
		{!(c.Skew >= 0 && c.Skew <= 5), flagError{"skew", c.Skew, "want 0 to 5"}},
		{c.Skew > 0 && c.SKUs == 1, flagError{"skew", nil, "want --skus 2 or more"}},
		{c.Lines < 1 || c.Lines > 20, flagError{"lines", c.Lines, "want 1 to 20"}},
		{c.Lines > c.SKUs, flagError{"lines", c.Lines, fmt.Sprintf("want at most as many as --skus %d, an order's lines are of different SKUs", c.SKUs)}},
		{!(c.Cancel >= 0 && c.Cancel <= 1), flagError{"cancel", c.Cancel, "want a share, 0 to 1"}},
		{!(c.Retry >= 0 && c.Retry <= 1), flagError{"retry", c.Retry, "want a share, 0 to 1"}},
		{len(c.Strategies) == 0, flagError{"strategies", nil, "want at least one"}},
		{c.Target != "" && (c.named() || c.Servers == docker),
			flagError{want: "--target is a shop that runs already; --mysql, --redis, --redlock, --zookeeper and --servers are for shops that are started"}},
		{c.Target != "" && c.Instances != nil, flagError{want: "--target is a shop that runs already; --instances is for shops that are started"}},
		{c.Target != "" && !isWebAddress(c.Target), flagError{"target", strconv.Quote(c.Target), "want a URL such as http://localhost:8080"}},
	} {
		if check.wrong {
			return &check.flagError
		}
	}
	if err := errors.Join(c.checkServers(), c.validateUI()); err != nil {
		return err
	}
	for flag, file := range map[string]string{"json": c.JSON, "html": c.HTML, "svg": c.SVG} {
		if err := checkFile(flag, file); err != nil {
			return err
		}
	}
	return nil
}

func (c *raceCommand) validateUI() error {
	if c.UI == nil {
		return nil
	}
	extra := c.crowdWords()
	switch _, err := web.Address(*c.UI); {
	case err != nil:
		return &flagError{want: "--ui " + err.Error()}
	case c.JSON != "" || c.HTML != "" || c.SVG != "":
		return &flagError{want: "--ui offers its reports in the browser; leave out --json, --html and --svg"}
	case len(extra) > 0:
		return &flagError{want: "--ui shows buyers who want one unit each, all at once; leave out " + extra[0]}
	}
	return nil
}

// checkFile finds out before the test whether a file can be written.
func checkFile(flag, file string) error {
	if file == "" || file == "-" && flag == "json" {
		return nil
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return &flagError{want: fmt.Sprintf("--%s %s is a folder", flag, file)}
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return &flagError{flag, file, "there is no folder " + filepath.Dir(file)}
	}
	return nil
}

func isWebAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" && u.Fragment == ""
}

// Run holds the races, or serves the page on which they are held.
func (c *raceCommand) Run(ctx context.Context, e environment) error {
	s := newScreen(e, c.JSON)
	return lab{raceCommand: *c, screen: s, log: newShopLog(e.stderr)}.run(ctx)
}

func (c *raceCommand) instances() int {
	if c.Instances == nil {
		return 3
	}
	return *c.Instances
}

// pace is when orders are sent.
func (c *raceCommand) pace() crowd.Pace {
	if c.Rate == nil && c.Duration == nil && c.Requests == nil {
		return crowd.Pace{}
	}
	p := crowd.Pace{Rate: value(c.Rate), Duration: value(c.Duration), Requests: maxRequests}
	if c.Requests != nil {
		p.Requests = *c.Requests
	}
	return p
}

// asked is what the flags ask for, as the report has it.
func (c *raceCommand) asked() result.Run {
	r := result.Run{
		Buyers: c.Buyers, Stock: c.Stock, Target: withoutPassword(c.Target),
		ThinkMS: crowd.Milliseconds(c.Think), Command: c.command(),
		Rate: value(c.Rate), Seconds: value(c.Duration).Seconds(), Requests: value(c.Requests),
		Skew: c.Skew, Cancel: c.Cancel, Retry: c.Retry,
	}
	if c.Target == "" {
		r.Instances = c.instances()
	}
	if c.SKUs > 1 {
		r.SKUs, r.Lines = c.SKUs, c.Lines
	}
	if len(c.crowdWords()) > 0 {
		r.Wanted = c.wanted()
	}
	return r
}

// command repeats the run. Addresses of servers may hold passwords and are left out.
func (c *raceCommand) command() string {
	named := c.Servers != docker // containers have addresses of their own once they run
	words := slices.Concat(
		[]string{
			"go run ./loadtest --strategies", strings.Join(c.Strategies, ","), "--buyers", strconv.Itoa(c.Buyers),
			"--stock", strconv.FormatInt(c.Stock, 10), "--think", c.Think.String(),
		},
		c.crowdWords(),
		flagWords([]flagWord{
			{c.Target == "", "--instances", strconv.Itoa(c.instances())},
			{c.Target != "", "--target", withoutPassword(c.Target)},
			{!named, "--servers", docker},
			{named && c.MySQL != "", "--mysql", "DSN"},
			{named && c.Redis != "", "--redis", "ADDR"},
			{named && len(c.Redlock) > 0, "--redlock", "ADDR,..."},
			{named && c.ZooKeeper != "", "--zookeeper", "ADDR"},
			{c.Timeout != 2*time.Minute, "--timeout", c.Timeout.String()},
		}),
	)
	return strings.Join(words, " ")
}

// crowdWords are the flags of a crowd that does not order once and all at once.
func (c *raceCommand) crowdWords() []string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	return flagWords([]flagWord{
		{c.Rate != nil, "--rate", number(value(c.Rate))},
		{c.Duration != nil, "--duration", value(c.Duration).String()},
		{c.Requests != nil, "--requests", strconv.Itoa(value(c.Requests))},
		{c.SKUs != 1, "--skus", strconv.Itoa(c.SKUs)},
		{c.Skew != 0, "--skew", number(c.Skew)},
		{c.Lines != 1, "--lines", strconv.Itoa(c.Lines)},
		{c.Cancel != 0, "--cancel", number(c.Cancel)},
		{c.Retry != 0, "--retry", number(c.Retry)},
	})
}

type flagWord struct {
	given       bool
	flag, value string
}

// flagWords are those that are given.
func flagWords(all []flagWord) []string {
	var words []string
	for _, f := range all {
		if f.given {
			words = append(words, f.flag, f.value)
		}
	}
	return words
}

// wanted says what the buyers want, for people.
func (c *raceCommand) wanted() string {
	buyers, units := humanize.Comma(int64(c.Buyers))+" buyers", humanize.Comma(c.Stock)
	var what string
	switch {
	case c.SKUs == 1:
		what = fmt.Sprintf("one of %s units", units)
	case c.Lines == 1:
		what = fmt.Sprintf("one of %s units of one of %d SKUs", units, c.SKUs)
	default:
		what = fmt.Sprintf("carts of 1 to %d SKUs, of %d SKUs with %s units", c.Lines, c.SKUs, units)
	}
	p := c.pace()
	var until []string
	if c.Duration != nil {
		until = append(until, "for "+p.Duration.String())
	}
	if c.Requests != nil {
		until = append(until, "up to "+humanize.Comma(int64(p.Requests))+" orders")
	}
	end := strings.Join(until, ", ")
	switch {
	case p == crowd.Pace{}:
		return fmt.Sprintf("%s want %s each, all at once", buyers, what)
	case p.Rate > 0:
		return fmt.Sprintf("%s orders per second are due, %s; %s send them and want %s each",
			strconv.FormatFloat(math.Round(p.Rate*10)/10, 'f', -1, 64), end, buyers, what)
	}
	return fmt.Sprintf("%s want %s each, again and again, %s", buyers, what, end)
}

func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "URL"
	}
	return u.Redacted()
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
