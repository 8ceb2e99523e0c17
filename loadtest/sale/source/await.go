package source

import (
	"context"
	"fmt"
	"time"
)

const (
	startLimit = 30 * time.Second
	askEvery   = 50 * time.Millisecond
)

// await asks again and again until there is no error.
func await(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		}
	}
}
