package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"example.com/shop/loadtest/cli"
)

// Limits of what can be asked for.
const (
	maxBuyers    = 100_000
	maxStock     = 1_000_000_000
	maxInstances = 16
	maxThink     = time.Second
	minTimeout   = time.Second
	maxTimeout   = time.Hour
	usualTimeout = 2 * time.Minute
)

// flags are what the user chose.
type flags struct {
	Strategies []string `default:"none,mutex,redis" help:"Ways to sell, one race each; 'all' for every one that the shop knows; wrong ones that their race does not catch are played step by step then."`
	Buyers     int      `default:"1000" help:"Buyers who all want one unit at the same moment (1 to 100000); with --rate, how many of them can wait for an answer at a time."`
	Stock      int64    `default:"100" help:"Units of each SKU for sale in each race (1 to 1000000000)."`

	crowd

	Instances *int          `placeholder:"N" help:"Shop instances to start (1 to 16); 3 if not given."`
	Think     time.Duration `default:"2ms" help:"Pause of the shop between reading stock and writing it (0s to 1s). It stands for the work of a real shop, and is why a race shows on every run."`

	places

	Target string `placeholder:"URL" help:"Start nothing; race in a running 'shop serve --lab', or a load balancer in front of several. A race in which orders expire is not judged: see --pay-within there."`

	UI *string `name:"ui" placeholder:"ADDR" help:"Open the lab in a browser instead: host:port, as in 127.0.0.1:8090. Without a host, this machine alone reaches it. Other flags are what its form says at first."`

	JSON    string        `name:"json" placeholder:"FILE" help:"Write the report as JSON too; '-' for stdout, everything else then goes to stderr."`
	HTML    string        `name:"html" placeholder:"FILE" help:"Write the report as one HTML file too, with charts and the timeline of the race; it opens without a network."`
	Timeout time.Duration `default:"2m" help:"Longest that one race may take, or its answers after --duration (1s to 1h). Buyers without an answer by then count as errors."`
}

// parse returns the flags of a race, or a cli.ErrUsage that names the flag that is wrong.
func parse(args []string, stdout, stderr io.Writer) (flags, error) {
	var f flags
	program := cli.Program{Name: "loadtest", About: description, Lesson: lessons}
	if err := program.Parse(&f, args, stdout, stderr); err != nil {
		return flags{}, err
	}
	return f, f.check()
}

// check returns a cli.ErrUsage for the first flag that asks for too much, too
// little or what another flag excludes.
func (f flags) check() error {
	var problem string
	switch n := f.instances(); {
	case f.Buyers < 1 || f.Buyers > maxBuyers:
		problem = fmt.Sprintf("--buyers %d: want 1 to %d", f.Buyers, maxBuyers)
	case f.Stock < 1 || f.Stock > maxStock:
		problem = fmt.Sprintf("--stock %d: want 1 to %d", f.Stock, maxStock)
	case n < 1 || n > maxInstances:
		problem = fmt.Sprintf("--instances %d: want 1 to %d", n, maxInstances)
	case f.Think < 0 || f.Think > maxThink:
		problem = fmt.Sprintf("--think %v: want 0s to %v", f.Think, maxThink)
	case f.Timeout < minTimeout || f.Timeout > maxTimeout:
		problem = fmt.Sprintf("--timeout %v: want %v to %dh", f.Timeout, minTimeout, maxTimeout/time.Hour)
	case f.problem() != "":
		problem = f.problem()
	case f.Rate != nil && f.Duration == nil && float64(*f.Requests) / *f.Rate > 0.9*f.Timeout.Seconds():
		problem = fmt.Sprintf("--requests %d at --rate %v take too long for --timeout %v: raise it, or say --duration", *f.Requests, *f.Rate, f.Timeout)
	case len(f.Strategies) == 0:
		problem = "--strategies: want at least one"
	case f.Target != "" && (f.named() || f.Servers == docker):
		problem = "--target is a shop that runs already; --mysql, --redis, --redlock, --zookeeper and --servers are for shops that are started"
	case f.conflict() != "":
		problem = f.conflict()
	case f.Target != "" && f.Instances != nil:
		problem = "--target is a shop that runs already; --instances is for shops that are started"
	case f.Target != "" && !webAddress(f.Target):
		problem = fmt.Sprintf("--target %q: want a URL such as http://localhost:8080", f.Target)
	case f.uiProblem() != "":
		problem = f.uiProblem()
	default:
		return errors.Join(f.checkServers(), f.checkFiles())
	}
	return fmt.Errorf("%w: %s", cli.ErrUsage, problem)
}

// checkFiles finds out before the test whether its reports can be written.
func (f flags) checkFiles() error {
	if err := checkJSON(f.JSON); err != nil || f.HTML == "" {
		return err
	}
	if f.HTML == f.JSON {
		return fmt.Errorf("%w: --html and --json name the same file %s", cli.ErrUsage, f.HTML)
	}
	return checkFile("--html", f.HTML)
}

// checkJSON does that for the file of --json.
func checkJSON(file string) error {
	if file == "" || file == "-" {
		return nil
	}
	return checkFile("--json", file)
}

func checkFile(flag, file string) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("%w: %s %s is a folder", cli.ErrUsage, flag, file)
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: %s %s: there is no folder %s", cli.ErrUsage, flag, file, filepath.Dir(file))
	}
	return nil
}

func (f flags) instances() int {
	if f.Instances == nil {
		return 3
	}
	return *f.Instances
}

func webAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" && u.Fragment == ""
}
