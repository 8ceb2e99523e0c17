package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/peers/measure"
	"example.com/shop/loadtest/peers/peer"
	"example.com/shop/loadtest/peers/server"
	"example.com/shop/loadtest/stats"
)

// idleTime is how long an idle waiter is watched: longer than a renewal's period.
const idleTime = 8 * time.Second

// imageVariable names the image of Redis for a machine without redis-server.
const imageVariable = "SHOP_TEST_REDIS_IMAGE"

// watchdog waits longer than a lease lives, so that one that was merely lost is
// not taken for a hang.
func watchdog() measure.Watchdog {
	return measure.Watchdog{Patience: peer.TTL * 3 / 2, Grace: 5 * time.Second}
}

// do is the run: a comparison, or a soak.
func (f flags) do(ctx context.Context, getenv func(string) string, stdout, stderr io.Writer) (err error) {
	out := stdout
	if f.json == "-" {
		out = stderr
	}
	s := server.At(f.redis)
	if f.redis == "" {
		if s, err = server.Start(ctx, cmp.Or(getenv(imageVariable), server.Image)); err != nil {
			return err
		}
		defer func() { err = cleanup.Join(err, s.Stop()) }()
	}
	m, err := look(ctx, s)
	if err != nil {
		return err
	}
	stop, err := profile(f.profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	r := &session{flags: f, addr: s.Addr, dog: watchdog(), out: out}
	r.report = report{Machine: m, Started: time.Now().UTC(), Rounds: f.rounds, Seconds: f.time.Seconds()}
	r.printMachine()
	work := r.compare
	if f.turns > 0 {
		work = r.soak
	}
	if err := work(ctx); err != nil {
		return err
	}
	if err := r.report.save(f.json, stdout); err != nil {
		return err
	}
	if r.broken {
		return fmt.Errorf("%w: see ours above", errBroken)
	}
	return nil
}

// session is one run of the program.
type session struct {
	flags  flags
	addr   string
	dog    measure.Watchdog
	out    io.Writer
	report report
	broken bool // ours was not right, somewhere
}

func (r *session) compare(ctx context.Context) error {
	for _, c := range r.flags.cases {
		fmt.Fprintf(r.out, "\n%s: %s\n", c.name, c.about)
		section := caseReport{Name: c.name, About: c.about}
		for _, p := range r.flags.peers {
			section.Peers = append(section.Peers, peerReport{Name: p.Name})
		}
		rounds := r.flags.rounds
		if c.kind == idling {
			rounds = 1
		}
		for round := range rounds {
			if c.load.Hold > 0 {
				section.SleepLoop = append(section.SleepLoop, measure.SleepLoop(ctx, c.load.Hold, r.flags.time))
			}
			for _, i := range stats.Rotation(len(r.flags.peers), round) {
				runtime.GC() // what the one before left behind is not this one's
				if err := r.one(ctx, c, round, r.flags.peers[i], &section.Peers[i]); err != nil {
					return err
				}
			}
		}
		r.report.Cases = append(r.report.Cases, section)
		section.print(r.out, c.kind)
	}
	return nil
}

// one measures a peer in one round of a case.
func (r *session) one(ctx context.Context, c contest, round int, p peer.Peer, into *peerReport) error {
	key := fmt.Sprintf("peers:%d:%s:%s:%d", r.report.Started.UnixNano(), c.name, p.Name, round)
	right := true
	switch c.kind {
	case throughput:
		counts, err := c.load.Run(ctx, p, r.addr, key, measure.Amount{Time: r.flags.time}, r.dog)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", c.name, p.Name, err)
		}
		into.Turns = append(into.Turns, newTurns(counts))
		right = counts.Right()
	case wakeUp:
		wake, err := measure.RunWake(ctx, p, r.addr, key, r.flags.time, r.dog)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", c.name, p.Name, err)
		}
		into.Wakes = append(into.Wakes, newWake(wake))
		right = wake.Hung == nil && wake.Failed == nil
	case idling:
		idle, err := measure.RunIdle(ctx, p, r.addr, key, max(idleTime, r.flags.time), r.dog)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", c.name, p.Name, err)
		}
		into.Idle = newIdle(idle)
		right = idle.Hung == nil
	}
	if p.Name == peer.Ours && !right {
		r.broken = true
	}
	return nil
}
