package ui

import (
	"context"
	"sync"
)

// server knows the last run, which may still go on.
type server struct {
	lab  Lab
	jobs chan func(context.Context) // room for the only one that may wait

	mu   sync.Mutex
	last *run // nil before the first
	play bool // one is played
}

func newServer(lab Lab) *server { return &server{lab: lab, jobs: make(chan func(context.Context), 1)} }

// work does one job after the other until ctx ends.
func (s *server) work(ctx context.Context) {
	for {
		select {
		case job := <-s.jobs:
			job(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// begin starts a run, unless something goes on already.
func (s *server) begin(r *run) (begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.play || !s.last.over() {
		return false
	}
	r.id = 1
	if s.last != nil {
		r.id = s.last.id + 1
	}
	s.last = r
	s.jobs <- func(ctx context.Context) { r.hold(ctx, s.lab) }
	return true
}

// beginPlay takes the lab for a play, which must end it, unless something goes on.
func (s *server) beginPlay() (begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.play || !s.last.over() {
		return false
	}
	s.play = true
	return true
}

func (s *server) endPlay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.play = false
}

// latest returns the last run, nil before the first.
func (s *server) latest() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
