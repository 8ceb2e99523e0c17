package stock

// Way is how units are taken from a SKU. Each is one short file in stockstore.
type Way string

const (
	// Overwrite writes back what an earlier read minus the units gives. Two
	// buyers that read the same number sell the same units: the lost update.
	Overwrite Way = "overwrite"

	// Conditional subtracts in the database, where enough are available.
	Conditional Way = "conditional"

	// Fenced subtracts in the database, where enough are available and the row
	// was last written under a lower fence.
	Fenced Way = "fenced"

	// ForUpdate reads the row and locks it until the transaction ends, thinks,
	// and writes back. A database with row locks keeps all others waiting.
	ForUpdate Way = "for-update"

	// Optimistic writes back what an earlier read minus the units gives, if the
	// row still is what was read, and else refuses with ErrChanged.
	Optimistic Way = "optimistic"
)

// Take is the wish to move units of a SKU from available to reserved.
type Take struct {
	SKU   string
	Units int64
	Fence int64 // for Fenced: the fence of the lease held
	Seen  Level // for Overwrite and Optimistic: the level read before

	// Terms, for Fenced, are those that the SKU must still be sold at, or the take is
	// refused with ErrChanged; nil for any.
	Terms *Terms

	// Think, for ForUpdate, is what is done between its read and its write; nil
	// for nothing. Its error is Take's.
	Think func() error
}
