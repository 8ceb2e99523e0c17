// Package locktest checks that a lock.Backend keeps the rules of package lock.
//
// A backend's test is one call, with a function that starts its store:
//
//	func TestRedis(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) locktest.Harness {
//			addr := startRedis(t)
//			return locktest.Harness{
//				Connect: func(t testing.TB) lock.Backend { return lock.NewRedis(connect(t, addr)) },
//				Fences:  true,
//			}
//		})
//	}
//
// Each call of Connect stands for another process: the suite puts one Locker on
// each and lets them contend. Races are made with signals: a Tap around the
// backend holds requests or answers back until the test lets them go. Where a
// test waits for time to pass, it waits for what the time brings about (a
// renewal seen, a key free), never for a guess of how long that takes.
package locktest
