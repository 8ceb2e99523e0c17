package order

import "fmt"

// StateError tells where an order is in its life, and so why it cannot go where
// it was asked to. It is an ErrState, and an ErrExpired if the order expired.
type StateError struct {
	Status Status
}

func (e *StateError) Error() string {
	if e.Status == Expired {
		return "it was not paid in time and has expired, its units are for sale again: place a new order"
	}
	return fmt.Sprintf("it is %s already", e.Status)
}

// Is makes it an ErrState, and an ErrExpired.
func (e *StateError) Is(target error) bool {
	return target == ErrState || target == ErrExpired && e.Status == Expired
}
