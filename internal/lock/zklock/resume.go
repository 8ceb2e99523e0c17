package zklock

import (
	"encoding/binary"
	"sync"
	"time"
)

// resumption holds back the first answers on a connection in which a session goes
// on, until the library has told the server again what it watches. In doing so it
// reads which change it has heard of last, while each answer already overwrites
// that: a data race, known since 2020 (go-zookeeper/zk, pull request 35).
type resumption struct {
	told chan struct{} // closed when the library writes that request
	once sync.Once
	over bool // belongs to who reads
}

// opSetWatches is the number of that request, which stands behind its length and
// its own number, 4 bytes each.
const (
	opSetWatches = 101
	opOffset     = 4 + 4
)

// holdLimit bounds the wait. There is nothing to tell, and no race, if the watch
// that was counted had just been asked for when the connection was lost.
const holdLimit = 100 * time.Millisecond

func newResumption() *resumption { return &resumption{told: make(chan struct{})} }

// wrote looks at a request that is about to be written.
func (r *resumption) wrote(frame []byte) {
	if len(frame) >= opOffset+4 && binary.BigEndian.Uint32(frame[opOffset:]) == opSetWatches {
		r.once.Do(func() { close(r.told) })
	}
}

// wait is called with an answer that was read, before the library sees it.
func (r *resumption) wait() {
	if r.over {
		return
	}
	r.over = true
	limit := time.NewTimer(holdLimit)
	defer limit.Stop()
	select {
	case <-r.told:
	case <-limit.C:
	}
}
