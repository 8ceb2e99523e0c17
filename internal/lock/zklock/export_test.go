package zklock

import "fmt"

// SetLastSequence makes a key's line run out of numbers sooner.
func (b *Backend) SetLastSequence(n int32) { b.lastNumber = fmt.Sprintf("%010d", n) }
