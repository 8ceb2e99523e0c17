package compare

import (
	"cmp"
	"slices"
	"strconv"

	"example.com/shop/loadtest/report"
)

// Comparison is what came of two runs, a before and b after.
type Comparison struct {
	Differ     []Difference // in what was asked for and where it ran
	Strategies []Pair       // that both have, in the order of the first
	OnlyFirst  []string
	OnlySecond []string

	a, b report.Report
}

// Difference is why speeds cannot be compared.
type Difference struct{ What, First, Second string }

// Pair is a strategy in both runs.
type Pair struct{ First, Second report.Strategy }

// Worse reports whether the second verdict is worse than the first.
func (p Pair) Worse() bool {
	return slices.Index(verdicts(), p.Second.Verdict) > slices.Index(verdicts(), p.First.Verdict)
}

// Of compares two reports.
func Of(a, b report.Report) Comparison {
	c := Comparison{a: a, b: b}
	other := facts(b)
	for i, f := range facts(a) {
		if f.value != other[i].value {
			c.Differ = append(c.Differ, Difference{f.name, f.value, other[i].value})
		}
	}
	for _, s := range a.Strategies {
		if i := find(b, s.Name); i >= 0 {
			c.Strategies = append(c.Strategies, Pair{s, b.Strategies[i]})
		} else {
			c.OnlyFirst = append(c.OnlyFirst, s.Name)
		}
	}
	for _, s := range b.Strategies {
		if find(a, s.Name) < 0 {
			c.OnlySecond = append(c.OnlySecond, s.Name)
		}
	}
	return c
}

// Whole reports whether all of both runs could be compared.
func (c Comparison) Whole() bool {
	return len(c.Differ) == 0 && len(c.OnlyFirst) == 0 && len(c.OnlySecond) == 0
}

// Worse returns the names of strategies whose verdict is worse than before.
func (c Comparison) Worse() []string {
	var names []string
	for _, p := range c.Strategies {
		if p.Worse() {
			names = append(names, p.First.Name)
		}
	}
	return names
}

func find(r report.Report, name string) int {
	return slices.IndexFunc(r.Strategies, func(s report.Strategy) bool { return s.Name == name })
}

type fact struct{ name, value string }

// facts are what has to be the same for speeds to be compared.
func facts(r report.Report) []fact {
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	run, m := r.Run, r.Machine
	return []fact{
		{"buyers", strconv.Itoa(run.Buyers)},
		{"stock", strconv.FormatInt(run.Stock, 10)},
		{"shop instances", strconv.Itoa(run.Instances)}, // 0 of a target
		{"think time", number(run.ThinkMS) + "ms"},
		{"rate", number(run.Rate)},
		{"duration", number(run.Seconds) + "s"},
		{"requests", strconv.Itoa(run.Requests)},
		{"SKUs", strconv.Itoa(max(1, run.SKUs))},
		{"skew", number(run.Skew)},
		{"lines", strconv.Itoa(max(1, run.Lines))},
		{"cancelled share", number(run.Cancel)},
		{"repeated share", number(run.Retry)},
		{"all at the same time", strconv.FormatBool(run.Together)},
		{"operating system", m.OS + "/" + m.Arch},
		{"CPUs", strconv.Itoa(m.CPUs)},
		{"CPU", m.CPUModel},
		{"database", cmp.Or(m.DatabaseVersion, m.Database)},
		{"Redis", cmp.Or(m.RedisVersion, m.Redis)},
	}
}
