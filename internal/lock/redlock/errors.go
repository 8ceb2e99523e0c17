package redlock

import "errors"

var (
	// ErrNoQuorum means that too few nodes answered to know. It is joined with
	// what is known of each of the others.
	ErrNoQuorum = errors.New("no quorum of nodes answered")

	// ErrTries means that Options.Tries attempts in a row got no quorum, because
	// somebody else held the key, votes were split, or, where it is joined with
	// ErrNoQuorum, too few nodes answered the last one.
	ErrTries = errors.New("out of tries")

	errSilent = errors.New("no answer in time")
	errBusy   = errors.New("too many requests under way")
)
