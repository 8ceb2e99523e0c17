//go:build race

package locksim_test

// The race detector makes the scheduler choose at random what runs next.
const shuffled = true

// Ten times slower, it looks at a fifth of the seeds.
const usual = 200
