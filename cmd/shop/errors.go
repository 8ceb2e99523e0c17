package main

import "errors"

// errDifferences means that the audit found some.
var errDifferences = errors.New("the accounts differ")

// errInterrupted means that a signal came before the work was done.
var errInterrupted = errors.New("interrupted")

// usageError is a mistake on the command line or in the environment.
type usageError struct {
	command string // whose --help tells what is right
	cause   error
}

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

// usage makes err a mistake in the use of a command; nil stays nil.
func usage(command string, err error) error {
	if err == nil {
		return nil
	}
	return &usageError{command: "shop " + command, cause: err}
}
