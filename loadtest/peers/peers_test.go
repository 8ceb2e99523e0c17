package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/testserver" //nolint:depguard // as in the program
)

func TestMain(m *testing.M) { os.Exit(testserver.Wrap(m).Run()) }

// parse reads a command line.
func parse(t *testing.T, args ...string) (s settings, err error) {
	parser, err := kong.New(&s)
	testserver.Must(t, err)
	_, err = parser.Parse(args)
	return s, err
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--rounds", "0"}, {"--time", "1ms"}, {"--cases", "hot,cold"}, {"--peers", "zookeeper"}, {"--nonsense"}, {"hot"},
	} {
		if _, err := parse(t, args...); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
	s, err := parse(t, "--cases", "hot,hold", "--peers", ours)
	if err != nil || !slices.Equal(s.Cases, []string{"hot", "hold"}) || !slices.Equal(s.Peers, []string{ours}) {
		t.Errorf("got %+v, %v", s, err)
	}
	// Without flags, all cases and peers.
	s, err = parse(t)
	if err != nil || len(s.Cases) != len(allLoads()) || len(s.Peers) != len(allPeers()) {
		t.Errorf("got %+v, %v", s, err)
	}
}

// The whole program, as short as can be: every peer in every case. That a library hangs now and then where several want
// a key is reported, and none of ours to mend.
func TestRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s, err := parse(t, "--redis", testserver.Redis(t), "--rounds", "2", "--time", "50ms")
	testserver.Must(t, err)
	if err := s.run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, l := range allLoads() {
		_, section, _ := strings.Cut(out.String(), "\n"+l.name+": ")
		section, _, _ = strings.Cut(section, "\n\n")
		for _, p := range allPeers() {
			if !strings.Contains(section, "\n"+p.name+" ") {
				t.Errorf("%s lacks %s:\n%s", l.name, p.name, section)
			}
		}
		if strings.Contains(section, "NO: ") || strings.Contains(section, "error") {
			t.Errorf("an adapter does not exclude, or fails:\n%s", section)
		}
	}
}

// An adapter whose ctx ends while it waits returns, without the key.
func TestPeer_cancelled(t *testing.T) {
	t.Parallel()
	addr := testserver.Redis(t)
	for _, p := range allPeers() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			c, err := p.open(addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.close() }()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			release, err := c.acquire(ctx, p.name)
			if err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			if _, err := c.acquire(short, p.name); err == nil {
				t.Error("a second acquisition: got the key, want an error")
			}
			if err := release(); err != nil {
				t.Errorf("release: got %v, want none", err)
			}
		})
	}
}

// fake is a peer of one slot that misbehaves on demand.
type fake struct {
	slot   chan struct{}
	open   bool  // lets all in
	forget int   // the turn after which the slot is never freed
	broken error // of every release

	turns int // guarded by the slot
}

func (f *fake) acquire(ctx context.Context, _ string) (func() error, error) {
	if f.open {
		return func() error { return nil }, nil
	}
	select {
	case f.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, errors.New("gave up")
	}
	time.Sleep(time.Millisecond)
	return func() error {
		if f.turns++; f.turns != f.forget {
			<-f.slot
		}
		return f.broken
	}, nil
}

func (f *fake) close() error { return nil }

// A lock does 500 turns of 2 ms in a second. What one does wrong is found out, and a hang ends when the library is
// cancelled.
func TestLoad_run(t *testing.T) {
	for _, c := range []struct {
		name  string
		fake  fake
		check func(round) bool
	}{
		{"a lock", fake{}, func(r round) bool {
			return verdict([]round{r}) == right && r.perSecond == 500 && r.longest >= 2*time.Millisecond &&
				r.gap.Round(100*time.Microsecond) == time.Millisecond
		}},
		{"lets two in", fake{open: true}, func(r round) bool { return r.overlaps > 0 }},
		{"hangs", fake{forget: 20}, func(r round) bool {
			return errors.Is(r.err, errHung) && r.perSecond == 0 && r.longest >= patience-time.Second
		}},
		{"hangs at once", fake{forget: 1}, func(r round) bool { return errors.Is(r.err, errHung) }},
		{"fails", fake{broken: errors.New("no luck")}, func(r round) bool { return r.perSecond == 0 && r.err != nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := c.fake
				f.slot = make(chan struct{}, 1)
				p := peer{name: "fake", open: func(string) (client, error) { return client{acquire: f.acquire, close: f.close}, nil }}
				l := load{clients: 2, goroutines: 3, keys: 1, hold: time.Millisecond}
				r, err := l.run(t.Context(), p, "", "key", time.Second)
				if err != nil || !c.check(r) {
					t.Errorf("got %+v, %v", r, err)
				}
			})
		})
	}
}

// What went wrong in any round is shown, a round in which a peer hung does not make it look slower, and raw is no
// library that others are compared with.
func TestResult_print(t *testing.T) {
	t.Parallel()
	r := &result{load: load{name: "hot"}, peers: allPeers(), rows: map[string][]round{
		raw:           {{perSecond: 900}, {perSecond: 900}},
		"redsync":     {{perSecond: 200, turns: 2, commands: 10}, {perSecond: 200, turns: 1, commands: 5}},
		"redislock":   {{overlaps: 2}, {}},
		"rueidislock": {{perSecond: 400}, {err: errHung}},
		ours:          {{perSecond: 800, gap: 44 * time.Microsecond}, {perSecond: 1600, gap: 44 * time.Microsecond}},
	}}
	var out bytes.Buffer
	r.print(&out)
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"redsync 200 0.22 0.50 0s 5.00 - yes", "redislock 0 - - 0s 0.00 - NO: 2 overlaps",
		"rueidislock 400 0.44 1.00 0s 0.00 - hung", "ours 1200 1.33 2.00 0s 0.00 44µs yes",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, &out)
		}
	}
}
