package locksim

// weather is what happens to messages, processes and the store. A seed's weather
// is the row at seed modulo their number.
type weather struct {
	name string

	slow   float64 // share of messages that take up to one and a half TTL
	lose   float64 // share of calls of which request or answer is lost
	repeat float64 // share of requests that arrive once more, later
	deaf   float64 // share of notifications that are lost

	// At most so many of each. That a Locker is closed while it is in use happens in
	// any weather.
	partitions int // a process is cut off, in one direction or both, for a while
	crashes    int // a process is cut off for good
	flushes    int // the store loses its memory
	fenceSteps int // the clock from which fences are minted steps, back or forth
	clockSteps int // so does the one by which leases run out
}

var weathers = []weather{
	{name: "calm"},
	{name: "slow", slow: 0.2},
	{name: "lossy", slow: 0.05, lose: 0.1, repeat: 0.1, deaf: 0.2},
	{name: "partitions", partitions: 4, deaf: 0.1},
	{name: "crashes", crashes: 2, slow: 0.05},
	{name: "amnesia", flushes: 3, lose: 0.02, repeat: 0.05},
	{name: "fence clock", fenceSteps: 4, repeat: 0.05},
	{name: "store clock", fenceSteps: 2, clockSteps: 3, lose: 0.02},
	{
		name: "storm", slow: 0.1, lose: 0.1, repeat: 0.1, deaf: 0.2,
		partitions: 3, crashes: 1, flushes: 2, fenceSteps: 2, clockSteps: 1,
	},
}

// calm: every answer comes within milliseconds. Then a waiter is served at once,
// and nobody loses a lease.
func (w weather) calm() bool { return w.name == "calm" }

// faithful: whatever is sent arrives, and the answer comes before its deadline.
// Then nothing may be left in the store, not even for a TTL.
func (w weather) faithful() bool {
	return w.lose == 0 && w.repeat == 0 && w.partitions == 0 && w.crashes == 0 && w.flushes == 0 && w.slow == 0
}
