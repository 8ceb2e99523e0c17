package zklock

// What tests of the package's promises cannot reach from outside.
var (
	FenceOf = fenceOf
	Escape  = escape
	OwnedBy = ownedBy
	Before  = before
)

// SetLastSequence makes a key's line run out of numbers sooner.
func (b *Backend) SetLastSequence(n int32) { b.lastSequence = n }
