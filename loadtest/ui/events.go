package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// every is how often the page hears of a change.
const every = 100 * time.Millisecond

// events tells the state at once, and then whenever it has changed. It ends with
// the page or with the lab.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var told []byte
	for {
		now, err := json.Marshal(s.latest().state())
		if err != nil {
			return
		}
		if !bytes.Equal(now, told) {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", now); err != nil || out.Flush() != nil {
				return
			}
			told = now
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}
