package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"example.com/shop/loadtest/cleanup"
)

// Exit codes.
const (
	OK     = 0
	Broken = 1 // a promise was broken, or the work could not be done
	Usage  = 2
)

// Exit returns the code that a program ends with, and tells why if it is not OK.
// path is what `go run` calls it by.
func Exit(ctx context.Context, name, path string, err error, stderr io.Writer) int {
	switch {
	case err == nil, errors.Is(err, ErrHelpShown):
		return OK
	case errors.Is(err, ErrUsage):
		fmt.Fprintf(stderr, "%s: %v\nTry: go run %s --help\n", name, err, path)
		return Usage
	case ctx.Err() != nil:
		fmt.Fprintf(stderr, "%s: %s\n", name, cleanup.Interrupted(err))
		return Broken
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return Broken
}
