// Package cleanup keeps what went wrong when something was stopped or removed apart
// from other errors, so that it can be told whatever else went wrong.
package cleanup

import "errors"

// failure is an error of a clean-up.
type failure struct{ error }

func (f failure) Error() string { return "clean-up failed: " + f.error.Error() }

func (f failure) Unwrap() error { return f.error }

// Join adds the outcome of a clean-up to the outcome of the work before it. Both may
// be nil.
func Join(work, cleanup error) error {
	if cleanup == nil {
		return work
	}
	return errors.Join(work, failure{cleanup})
}

// Failed returns what of err is of a clean-up, or nil.
func Failed(err error) error {
	switch err := err.(type) { //nolint:errorlint // it walks the tree by itself, to find all of them
	case failure:
		return err
	case interface{ Unwrap() error }:
		return Failed(err.Unwrap())
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range err.Unwrap() {
			all = append(all, Failed(one))
		}
		return errors.Join(all...)
	}
	return nil
}
