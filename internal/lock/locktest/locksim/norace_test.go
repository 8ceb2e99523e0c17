//go:build !race

package locksim_test

const shuffled = false

// usual is how many seeds are run unless -seeds says otherwise.
const usual = 1000
