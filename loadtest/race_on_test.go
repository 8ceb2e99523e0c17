//go:build race

package main

// The race detector takes many times the memory and time.
const raceDetector = true
