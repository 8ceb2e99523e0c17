package locksim

// weather is what happens to messages, processes and the store. A seed's weather
// is the row at seed modulo their number.
type weather struct {
	name string

	slow     float64 // share of messages that take up to one and a half TTL
	lose     float64 // share of calls of which request or answer is lost
	repeat   float64 // share of requests that arrive once more, later
	stubborn float64 // share of calls that outlive their context
	deaf     float64 // share of notifications that are lost

	// At most so many of each. That a Locker is closed while it is in use happens in
	// any weather.
	partitions int // a process is cut off, in one direction or both, for a while
	crashes    int // a process is cut off for good
	flushes    int // the store loses its memory
	fenceSteps int // the clock from which fences are minted steps, back or forth
	clockSteps int // so does the one by which leases run out
}

var weathers = []weather{
	{name: "calm", stubborn: 0.5},
	{name: "slow", stubborn: 1, slow: 0.2},
	{name: "lossy", stubborn: 0.3, slow: 0.05, lose: 0.1, repeat: 0.1, deaf: 0.2},
	{name: "partitions", stubborn: 0.5, partitions: 4, deaf: 0.1},
	{name: "crashes", stubborn: 0.5, crashes: 2, slow: 0.05},
	{name: "amnesia", stubborn: 0.5, flushes: 3, lose: 0.02, repeat: 0.05},
	{name: "fence clock", stubborn: 0.5, fenceSteps: 4, repeat: 0.05},
	{name: "store clock", stubborn: 0.5, fenceSteps: 2, clockSteps: 3, lose: 0.02},
	{
		name: "storm", stubborn: 0.5, slow: 0.1, lose: 0.1, repeat: 0.1, deaf: 0.2,
		partitions: 3, crashes: 1, flushes: 2, fenceSteps: 2, clockSteps: 1,
	},
}

// calm: every answer comes within milliseconds. Then a waiter is served at once,
// and nobody loses a lease.
func (w weather) calm() bool { return w.name == "calm" }

// faithful: whatever is sent arrives, and nobody stops listening for the answer.
// Then nothing may be left in the store, not even for a TTL.
func (w weather) faithful() bool {
	return w.lose == 0 && w.repeat == 0 && w.partitions == 0 && w.crashes == 0 && w.flushes == 0 &&
		(w.stubborn == 1 || w.slow == 0)
}
