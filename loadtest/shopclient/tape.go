package shopclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// TapeEnded is the state of a Tape whose request was answered.
const TapeEnded = "ended"

// Tape is what a request has done by now, as the shop recorded it.
type Tape struct {
	State   string      `json:"state"`
	Version int         `json:"version"` // higher with each change
	Events  []TapeEvent `json:"events"`
}

// TapeEvent is a step, a command or a statement of a request.
type TapeEvent struct {
	At     int64  `json:"at"` // microseconds since 1970, by the shop's clock
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Answer string `json:"answer"`
}

// Tape returns what was recorded under a name as soon as its version is higher
// than seen, or after a while as it is. ErrNotFound: nothing was, by now.
func (c *Client) Tape(ctx context.Context, name string, seen int) (Tape, error) {
	path := "/v1/tapes/" + url.PathEscape(name) + "?seen=" + strconv.Itoa(seen)
	return c.tape(ctx, http.MethodGet, path)
}

// Resume lets the request go on that is recorded under this name.
func (c *Client) Resume(ctx context.Context, name string) (Tape, error) {
	return c.tape(ctx, http.MethodPost, "/v1/tapes/"+url.PathEscape(name)+"/resume")
}

func (c *Client) tape(ctx context.Context, method, path string) (t Tape, err error) {
	r, err := c.do(ctx, method, path, nil, nil)
	switch {
	case err != nil:
		return t, err
	case r.status == http.StatusNotFound:
		return t, ErrNotFound
	}
	err = r.decode(http.StatusOK, &t)
	return t, err
}
