package buyers

import "time"

// Slices counts orders and refusals over time, in equal slices of the race.
type Slices struct {
	Length           time.Duration
	Orders, Refusals []int64
}

// Slices cuts the race into n slices, n at least 1.
func (l Log) Slices(n int) Slices {
	s := Slices{
		Length:   max(time.Microsecond, (l.Took+time.Duration(n)-1)/time.Duration(n)),
		Orders:   make([]int64, n),
		Refusals: make([]int64, n),
	}
	for _, r := range l.Records {
		i := min(n-1, int(r.Ended/s.Length))
		switch r.Outcome {
		case Ordered:
			s.Orders[i]++
		case Refused:
			s.Refusals[i]++
		case Failed, Unknown:
		}
	}
	return s
}
