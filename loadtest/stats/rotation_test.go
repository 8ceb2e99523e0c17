package stats

import (
	"slices"
	"testing"
)

func TestRotation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, round int
		want     []int
	}{
		{3, 0, []int{0, 1, 2}},
		{3, 1, []int{1, 2, 0}},
		{3, 5, []int{2, 0, 1}},
		{1, 7, []int{0}},
		{0, 0, []int{}},
	} {
		if got := Rotation(c.n, c.round); !slices.Equal(got, c.want) {
			t.Errorf("Rotation(%d, %d): got %v, want %v", c.n, c.round, got, c.want)
		}
	}
}
