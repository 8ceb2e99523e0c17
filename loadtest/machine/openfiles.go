package machine

import "fmt"

// spare are open files beside the connections: the database's, Redis', logs.
const spare = 500

// TooManyError means that the operating system does not allow as many open files
// as the connections need.
type TooManyError struct {
	Connections, Allowed int
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d connections need more open files than the %d allowed here; allow more with `ulimit -n %d`, or have fewer buyers",
		e.Connections, e.Allowed, e.Connections+spare)
}
