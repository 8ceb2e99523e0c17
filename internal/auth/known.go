package auth

import (
	"crypto/sha256"
	"sync"
)

// maxKnown is how many tokens one of the two maps of known has: a few megabytes in
// all, and more buyers than come back within seconds.
const maxKnown = 8192

// tokenSum is all that is kept of a token: what finds it in memory cannot show it.
type tokenSum [sha256.Size]byte

func sumOf(token string) tokenSum { return sha256.Sum256([]byte(token)) }

// known are the claims of tokens that were verified lately, so that a buyer's next
// request costs one hash. Only who has shown a good token gets in. When a map is
// full, it becomes the old one, and what nobody asked for meanwhile is forgotten.
type known struct {
	mu       sync.Mutex
	now, old map[tokenSum]*claims
}

// get returns the claims of a token that was verified before; nil for any other.
// Nobody may change them.
func (k *known) get(token tokenSum) *claims {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.now[token]; c != nil {
		return c
	}
	c := k.old[token]
	if c != nil {
		k.put(token, c)
	}
	return c
}

func (k *known) add(token tokenSum, c *claims) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(token, c)
}

// put adds a token. The caller holds mu.
func (k *known) put(token tokenSum, c *claims) {
	if k.now == nil || len(k.now) >= maxKnown {
		k.now, k.old = map[tokenSum]*claims{}, k.now
	}
	k.now[token] = c
}
