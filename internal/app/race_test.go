//go:build race

package app_test

// Under the race detector everything takes several times the memory and the time.
const (
	raceDetector = true
	crowd        = 300
)
