package stats

import "testing"

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := Median(c.values); got != c.want {
			t.Errorf("Median(%v): got %v, want %v", c.values, got, c.want)
		}
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
