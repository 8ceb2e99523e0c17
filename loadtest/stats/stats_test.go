package stats

import (
	"slices"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{7}, 7},
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{1, 1, 1, 1000}, 1},
	} {
		before := slices.Clone(c.values)
		if got := Median(c.values); got != c.want {
			t.Errorf("Median(%v): got %v, want %v", c.values, got, c.want)
		}
		if !slices.Equal(c.values, before) {
			t.Errorf("Median changed %v to %v", before, c.values)
		}
	}
	if got, want := Median([]time.Duration{3 * time.Second, time.Second}), 2*time.Second; got != want {
		t.Errorf("Median of durations: got %v, want %v", got, want)
	}
}

func TestRatio(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		a, b []float64
		want string
	}{
		{"within rounds, not of medians", []float64{10, 200, 3000}, []float64{5, 100, 1000}, "2.00"},
		{"a round without the other", []float64{10, 20, 90}, []float64{5, 10}, "2.00"},
		{"a round in which one of them did nothing", []float64{10, 20, 0}, []float64{0, 10, 10}, "2.00"},
		{"no rounds", []float64{1}, nil, "-"},
	} {
		if got := Ratio(c.a, c.b); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
