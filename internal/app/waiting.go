package app

import "time"

// quiet is how long a server may take to answer before anybody is told: one that
// is up does so sooner.
const quiet = 200 * time.Millisecond

// announce logs that a server is waited for, once that takes longer than quiet.
// Call over when the wait has ended.
func (s Settings) announce(who string) (over func()) {
	t := time.AfterFunc(quiet, func() {
		s.log().Info("waiting for "+who, "at_most", s.StartTimeout)
	})
	return func() { t.Stop() }
}
