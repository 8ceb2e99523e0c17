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
