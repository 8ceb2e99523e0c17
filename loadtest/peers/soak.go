package main

import (
	"context"
	"fmt"

	"example.com/shop/loadtest/peers/measure"
	"example.com/shop/loadtest/peers/peer"
)

// soak takes many contended turns and looks for a hang.
func (r *session) soak(ctx context.Context) error {
	fmt.Fprintf(r.out, "\nsoak: %d turns, 4 clients x 16 goroutines on one key\n", r.flags.turns)
	section := caseReport{Name: "soak", About: "4 clients x 16 goroutines on one key"}
	for _, p := range r.flags.peers {
		key := fmt.Sprintf("peers:%d:soak:%s", r.report.Started.UnixNano(), p.Name)
		counts, err := spread(0).Run(ctx, p, r.addr, key, measure.Amount{Turns: r.flags.turns}, r.dog)
		if err != nil {
			return fmt.Errorf("soak: %s: %w", p.Name, err)
		}
		section.Peers = append(section.Peers, peerReport{Name: p.Name, Turns: []turns{newTurns(counts)}})
		if p.Name == peer.Ours && !counts.Right() {
			r.broken = true
		}
		fmt.Fprintf(r.out, "%s: %d turns ended\n", p.Name, counts.Turns)
	}
	r.report.Cases = append(r.report.Cases, section)
	section.print(r.out, throughput)
	return nil
}
