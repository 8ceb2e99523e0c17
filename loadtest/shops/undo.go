package shops

import (
	"errors"
	"slices"
)

// undo is what is to be stopped and removed, in the order it was started.
type undo struct {
	steps []func() error
}

func (u *undo) add(step func() error) { u.steps = append(u.steps, step) }

// run undoes the last first, all of it, whatever fails. Once.
func (u *undo) run() error {
	var errs []error
	for _, step := range slices.Backward(u.steps) {
		errs = append(errs, step())
	}
	u.steps = nil
	return errors.Join(errs...)
}
