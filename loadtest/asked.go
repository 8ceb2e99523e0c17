package main

import "example.com/shop/loadtest/report"

// asked is what the flags ask for, as the report has it.
func (f flags) asked() report.Run {
	r := report.Run{
		Buyers: f.Buyers, Stock: f.Stock, Target: withoutPassword(f.Target),
		ThinkMS: report.Milliseconds(f.Think), Command: f.command(),
		Rate: value(f.Rate), Seconds: value(f.Duration).Seconds(), Requests: value(f.Requests),
		Skew: f.Skew, Cancel: f.Cancel, Retry: f.Retry,
	}
	if f.Target == "" {
		r.Instances = f.instances()
	}
	if f.SKUs > 1 {
		r.SKUs, r.Lines = f.SKUs, f.Lines
	}
	if len(f.words()) > 0 {
		r.Wanted = f.wants(f.Buyers, f.Stock)
	}
	return r
}
