package report

// Wait is a point of the curve of how long buyers waited: this percentage of
// them, all in all, waited at most that long.
type Wait struct {
	Percentile float64 `json:"percentile"`
	MS         float64 `json:"ms"`
}

// Answers counts what buyers were told over time, in slices of equal length from
// the common start on.
type Answers struct {
	SliceMS  float64 `json:"slice_ms"`
	Orders   []int64 `json:"orders"`
	Refusals []int64 `json:"refusals"`
}
