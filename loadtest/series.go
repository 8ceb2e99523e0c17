package main

import (
	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/report"
)

// sliced is into how many slices a race is cut to show what happened when.
const sliced = 50

func answers(log buyers.Log) report.Answers {
	s := log.Slices(sliced)
	return report.Answers{SliceMS: report.Milliseconds(s.Length), Orders: s.Orders, Refusals: s.Refusals}
}

func curve(log buyers.Log) []report.Wait {
	var points []report.Wait
	for _, share := range log.Curve() {
		points = append(points, report.Wait{Percentile: share.Percentile, MS: report.Milliseconds(share.Wait)})
	}
	return points
}
