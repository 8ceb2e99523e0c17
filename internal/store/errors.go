package store

import "errors"

var (
	// ErrSettings means that a DSN, a path or a Pool cannot work. The message
	// names the setting and never shows a password.
	ErrSettings = errors.New("database settings")

	// ErrBusy means that the database gave up waiting for a lock, kept choosing
	// the transaction as a deadlock's victim, or went away before the COMMIT was
	// sent. Nothing was changed; asking again is safe.
	ErrBusy = errors.New("database is busy")

	// ErrOutcomeUnknown means that a COMMIT was sent and its answer was lost: the
	// transaction is there as a whole, or not at all.
	ErrOutcomeUnknown = errors.New("answer to COMMIT was lost")
)
