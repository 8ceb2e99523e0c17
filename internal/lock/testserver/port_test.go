package testserver

import "testing"

// No port is given twice, and none that somebody could be given otherwise.
func TestFreePorts(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 100 {
		ports, err := freePorts(t.Context(), 6)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if seen[port] || port <= busPort(clusterNodes-1) || port >= 32768 {
				t.Errorf("got port %d, want one that is new and in no other's range", port)
			}
			seen[port] = true
		}
	}
	if len(seen) != 600 {
		t.Errorf("got %d ports, want 600", len(seen))
	}
}
