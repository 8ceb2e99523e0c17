package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"
)

// Limits of what can be asked for.
const (
	maxBuyers    = 100_000
	maxStock     = 1_000_000_000
	maxInstances = 16
	maxThink     = time.Second
	minTimeout   = time.Second
	maxTimeout   = time.Hour
)

// flags are what the user chose.
type flags struct {
	Strategies []string `default:"none,mutex,redis" help:"Ways to sell, one race each; 'all' for every one that the shop knows."`
	Buyers     int      `default:"1000" help:"Buyers who all want one unit at the same moment (1 to 100000)."`
	Stock      int64    `default:"100" help:"Units for sale in each race (1 to 1000000000)."`

	Instances *int          `placeholder:"N" help:"Shop instances to start (1 to 16); 3 if not given."`
	Think     time.Duration `default:"2ms" help:"Pause of the shop between reading stock and writing it (0s to 1s). It stands for the work of a real shop, and is why a race shows on every run."`

	MySQL  string `name:"mysql" placeholder:"DSN" help:"Let the shops that are started use this MySQL or MariaDB: user:password@tcp(host:3306)/database. It is migrated and gains SKUs and orders: use one for tests."`
	Redis  string `placeholder:"ADDR" help:"Let the shops that are started use this Redis: host:port or redis:// URL."`
	Target string `placeholder:"URL" help:"Start nothing; race in a running 'shop serve --lab', or a load balancer in front of several."`

	JSON    string        `name:"json" placeholder:"FILE" help:"Write the report as JSON too; '-' for stdout, everything else then goes to stderr."`
	Timeout time.Duration `default:"2m" help:"Longest that one race may take (1s to 1h). Buyers without an answer by then count as errors."`
}

// errHelpShown means that the user asked for help and got it.
var errHelpShown = errors.New("help was shown")

// parse returns the flags, or an errUsage that names the flag that is wrong.
func parse(args []string, stdout, stderr io.Writer) (flags, error) {
	var f flags
	shown := false
	parser, err := kong.New(&f,
		kong.Name("loadtest"),
		kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
		kong.Exit(func(int) { shown = true }),
	)
	if err != nil {
		return flags{}, err
	}
	_, err = parser.Parse(args)
	switch {
	case shown:
		return flags{}, errHelpShown
	case err != nil:
		return flags{}, fmt.Errorf("%w: %w", errUsage, err)
	}
	return f, f.check()
}

// check returns an errUsage for the first flag that asks for too much, too
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
		problem = fmt.Sprintf("--timeout %v: want %v to %v", f.Timeout, minTimeout, maxTimeout)
	case len(f.Strategies) == 0:
		problem = "--strategies: want at least one"
	case f.Target != "" && (f.MySQL != "" || f.Redis != ""):
		problem = "--target is a shop that runs already; --mysql and --redis are for shops that are started"
	case f.Target != "" && f.Instances != nil:
		problem = "--target is a shop that runs already; --instances is for shops that are started"
	case f.Target != "" && !webAddress(f.Target):
		problem = fmt.Sprintf("--target %q: want a URL such as http://localhost:8080", f.Target)
	default:
		return f.checkFile()
	}
	return fmt.Errorf("%w: %s", errUsage, problem)
}

// checkFile finds out before the test whether its report can be written.
func (f flags) checkFile() error {
	if f.JSON == "" || f.JSON == "-" {
		return nil
	}
	if info, err := os.Stat(f.JSON); err == nil && info.IsDir() {
		return fmt.Errorf("%w: --json %s is a folder", errUsage, f.JSON)
	}
	if info, err := os.Stat(filepath.Dir(f.JSON)); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: --json %s: there is no folder %s", errUsage, f.JSON, filepath.Dir(f.JSON))
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
