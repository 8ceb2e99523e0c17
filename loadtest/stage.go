package main

import (
	"context"
	"sync"

	"example.com/shop/loadtest/steps"
)

// stage is a player that is opened when it is first asked for.
type stage struct {
	open func() (*steps.Player, error)

	mu     sync.Mutex
	player *steps.Player
}

// get returns the player. An error is not remembered: the next one may succeed.
func (s *stage) get() (*steps.Player, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.player != nil {
		return s.player, nil
	}
	player, err := s.open()
	if err == nil {
		s.player = player
	}
	return player, err
}

func (s *stage) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.player == nil {
		return nil
	}
	return s.player.Close(ctx)
}
