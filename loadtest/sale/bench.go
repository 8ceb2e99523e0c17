package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"

	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/machine"
	"example.com/shop/loadtest/sale/process"
	"example.com/shop/loadtest/shopclient"
)

const (
	patience = 2 * time.Minute // for one answer: more than a shop's own limit
	asking   = time.Minute     // for requests outside of the load
)

// contestant is a strategy, or nothing, and where it is found.
type contestant struct {
	name  string
	procs []*process.Process
}

func (c contestant) isNothing() bool { return c.name == nothing }

// strategy is what shops are asked for.
func (c contestant) strategy() string {
	if c.isNothing() {
		return ""
	}
	return c.name
}

// bench is the run. Everything that it started is stopped when it returns.
func bench(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) (err error) {
	f, err := parse(args, stdout, stderr)
	if err != nil {
		return err
	}
	cases, err := f.cases()
	if err != nil {
		return err
	}
	if err := machine.AllowConnections(most(cases)); err != nil {
		return err
	}
	out := stdout
	if f.JSON == "-" {
		out = stderr
	}
	progress := newProgress(getenv, stderr)
	r := newReport(f)
	site, err := open(ctx, f, progress.say)
	defer func() { err = cleanup.Join(err, site.close()) }()
	if err != nil {
		return err
	}
	s := &session{flags: f, site: site, report: r, progress: progress, out: out,
		conns: shopclient.NewConnections(instances, asking)}
	defer s.conns.CloseIdleConnections()
	if err := s.lineUp(ctx); err != nil {
		return err
	}
	r.Machine.Database, r.Machine.Redis = site.database, site.redis
	r.head(out)
	for _, c := range cases {
		if err := s.hold(ctx, c); err != nil {
			return err
		}
	}
	if err := r.save(f.JSON, stdout); err != nil {
		return err
	}
	if s.broken {
		return errBroken
	}
	return nil
}

// session is one run of the program.
type session struct {
	flags    flags
	site     *site
	lineup   []contestant // nothing is the last
	conns    *http.Client
	report   *report
	progress *progress
	out      io.Writer
	broken   bool // some row is not right
	loads    int  // held so far: makes names that are new
}

// operator speaks to the first shop. It has seen what the others sold: they share
// the database.
func (s *session) operator() *shopclient.Client {
	return shopclient.New("http://"+s.lineup[0].procs[0].Greeting, s.conns)
}

// lineUp starts shops and handlers and finds out which strategies there are.
func (s *session) lineUp(ctx context.Context) error {
	s.progress.say("starting shops")
	shops, err := s.site.several(ctx, s.site.startShop)
	if err != nil {
		return err
	}
	client := shopclient.New("http://"+shops[0].Greeting, s.conns)
	lab, err := client.Lab(ctx)
	if err != nil {
		return err
	}
	for _, name := range s.flags.Strategies {
		if why := missing(lab.Strategies, name); why != "" {
			s.report.LeftOut = append(s.report.LeftOut, name+": "+why)
			continue
		}
		s.lineup = append(s.lineup, contestant{name, shops})
	}
	if len(s.lineup) == 0 {
		return fmt.Errorf("%w: --strategies: none that this shop can sell by: %s", cli.ErrUsage, strings.Join(s.report.LeftOut, "; "))
	}
	if s.site.size, err = s.sample(ctx); err != nil {
		return err
	}
	handlers, err := s.site.several(ctx, s.site.startNothing)
	s.lineup = append(s.lineup, contestant{nothing, handlers})
	return err
}

// missing returns why a shop cannot sell by a strategy; empty if it can.
func missing(table []shopclient.Strategy, name string) string {
	for _, row := range table {
		if row.Name != name {
			continue
		}
		if row.Available {
			return ""
		}
		return row.Reason
	}
	return "this shop does not know it"
}

// cores is what processor time is a part of.
func cores() float64 { return float64(runtime.NumCPU()) }
