package tape

import "errors"

var (
	// ErrInvalid means that a request asks for a tape that cannot be.
	ErrInvalid = errors.New("invalid tape")

	// ErrNotFound means that there is no tape of this name, or no longer.
	ErrNotFound = errors.New("no such tape")
)
