package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/peers/peer"
	"example.com/shop/loadtest/peers/server/servertest"
)

func TestRun_usage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, exitOK, "Exit code"},
		{[]string{"-h"}, exitOK, "rueidislock"},
		{[]string{"-rounds", "0"}, exitUsage, "-rounds 0"},
		{[]string{"-time", "1ms"}, exitUsage, "-time 1ms"},
		{[]string{"-turns", "-1"}, exitUsage, "-turns -1"},
		{[]string{"-cases", "hot,cold"}, exitUsage, `"cold"`},
		{[]string{"-peers", "zookeeper"}, exitUsage, `"zookeeper"`},
		{[]string{"-nonsense"}, exitUsage, "nonsense"},
		{[]string{"hot"}, exitUsage, `"hot"`},
		{[]string{"-redis", "127.0.0.1:1"}, exitBroken, "127.0.0.1:1"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), c.args, os.Getenv, &out, &errs)
		if code != c.code || !strings.Contains(out.String()+errs.String(), c.says) {
			t.Errorf("%v: got %d and %q, want %d and %q", c.args, code, out.String()+errs.String(), c.code, c.says)
		}
	}
}

// "Stopped and removed" is not said of what is not.
func TestExit_interrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		err  error
		text string
	}{
		{ctx.Err(), "peers: interrupted; what it started is stopped and removed\n"},
		{cleanup.Join(ctx.Err(), errors.New("it runs on")), "peers: interrupted; clean-up failed: it runs on\n"},
	} {
		var stderr bytes.Buffer
		if code := exit(ctx, c.err, &stderr); code != exitBroken || stderr.String() != c.text {
			t.Errorf("%v: got %d, %q, want %d, %q", c.err, code, stderr.String(), exitBroken, c.text)
		}
	}
}

// The whole program, as short as can be: every peer in every case but the one that
// has to last, which is the next test's.
func TestRun(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	file := filepath.Join(t.TempDir(), "report.json")
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"-redis", s.Addr, "-rounds", "2", "-time", "50ms", "-cases", "one,keys,hot,spread,hold,wake", "-json", file}, os.Getenv, &out, &errs)
	if code != exitOK {
		t.Fatalf("exit code: got %d, want %d\n%s%s", code, exitOK, &out, &errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if got, want := len(r.Cases), len(contests())-1; got != want {
		t.Errorf("cases: got %d, want %d", got, want)
	}
	for _, c := range r.Cases {
		for _, p := range c.Peers {
			if len(p.Turns) != 2 && len(p.Wakes) != 2 {
				t.Errorf("%s: %s: got %+v, want two rounds", c.Name, p.Name, p)
			}
			if !strings.Contains(out.String(), p.Name) {
				t.Errorf("output lacks %s:\n%s", p.Name, &out)
			}
		}
	}
}

// No waiter of ours polls.
func TestRun_idle(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"-redis", s.Addr, "-cases", "idle", "-peers", peer.Ours, "-json", "-"}, os.Getenv, &out, &errs)
	if code != exitOK {
		t.Fatalf("exit code: got %d, want %d\n%s", code, exitOK, &errs)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("stdout is not JSON alone: %v", err)
	}
	for command, n := range r.Cases[0].Peers[0].Idle.Waiter {
		if command != "PING" || n > 4 {
			t.Errorf("waiter sent %s %d times, want a few PINGs of its subscription", command, n)
		}
	}
}

func TestRun_soak(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"-redis", s.Addr, "-turns", "2000"}, os.Getenv, &out, &errs)
	if code != exitOK || !strings.Contains(out.String(), "2000 turns ended") {
		t.Errorf("got %d and\n%s%s\nwant %d and 2000 turns", code, &out, &errs, exitOK)
	}
}

// What went wrong in any round is told, and not left to a mean.
func TestPeerReport_right(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		round turns
		want  string
	}{
		{turns{}, "yes"},
		{turns{Overlaps: 2, Lost: 1}, "NO: 2 overlaps, 1 lost updates"},
		{turns{Hung: "hung"}, "hung"},
		{turns{Errors: 3, FirstError: "no route"}, "3 errors, the first: no route"},
	} {
		p := peerReport{Turns: []turns{{}, c.round, {}}}
		if got := p.right(); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.round, got, c.want)
		}
	}
}

func TestPeerReport_leastFair(t *testing.T) {
	t.Parallel()
	p := peerReport{Turns: []turns{{Of: 4, Most: 10, Least: 10}, {Of: 4, Most: 482, Least: 24}}}
	if got, want := p.leastFair(), "482/24 = 20.08"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Raw is compared with, but it is no library that could be chosen.
func TestCaseReport_fastest(t *testing.T) {
	t.Parallel()
	at := func(name string, rate float64) peerReport {
		return peerReport{Name: name, Turns: []turns{{PerSecond: rate}}}
	}
	c := caseReport{Peers: []peerReport{at(peer.Raw, 9), at("redsync", 2), at("redislock", 3), at(peer.Ours, 8)}}
	if got := c.fastest(); got != "redislock" {
		t.Errorf("got %q, want redislock", got)
	}
}

// A round in which a peer hung does not make it look slower.
func TestCaseReport_rates(t *testing.T) {
	t.Parallel()
	c := caseReport{Peers: []peerReport{{Name: "x", Turns: []turns{{PerSecond: 8}, {PerSecond: 1, Hung: "hung"}, {PerSecond: 6}}}}}
	if got, want := ended(c.rates("x")), []float64{8, 6}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
