package stats

// Rotation returns 0 to n-1 in the order in which n contestants take their turns
// in a round: each round begins with another one.
func Rotation(n, round int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = (i + round) % n
	}
	return order
}
