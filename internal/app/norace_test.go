//go:build !race

package app_test

const (
	raceDetector = false
	crowd        = 2000
)
