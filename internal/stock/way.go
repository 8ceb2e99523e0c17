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
)

// Take is the wish to move units of a SKU from available to reserved.
type Take struct {
	SKU   string
	Units int64
	Fence int64 // for Fenced: the fence of the lease held
	Seen  Level // for Overwrite: the level read before
}
