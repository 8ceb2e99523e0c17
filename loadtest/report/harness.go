package report

import "fmt"

// Harness is what the load test itself cost, while the races ran.
type Harness struct {
	CPUSeconds   float64 `json:"cpu_seconds"`
	CPUShare     float64 `json:"cpu_share"`      // of all that the machine's CPUs could do, 0 to 1
	PeakMemoryMB float64 `json:"peak_memory_mb"` // the most that the process has had in RAM since its start

	// WithShops says that the shops ran in the same process, and are in these figures.
	WithShops bool `json:"with_shops"`
}

// Says is a sentence for people.
func (h Harness) Says() string {
	who := "the load test alone"
	if h.WithShops {
		who = "the load test with the shops that it runs"
	}
	return fmt.Sprintf("%s used %.1f s of CPU, %.0f %% of this machine, and at most %.0f MB of memory",
		who, h.CPUSeconds, 100*h.CPUShare, h.PeakMemoryMB)
}
