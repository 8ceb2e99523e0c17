//go:build !race

package locksim_test

const shuffled = false
