package shopclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNotLab means that the shop is not in teaching mode, or no shop at all.
	ErrNotLab = errors.New("not a shop in teaching mode")

	// ErrNotFound means that the shop knows no such thing.
	ErrNotFound = errors.New("not found")
)

// Problem is what a shop says about a request that it did not fulfil (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Detail string `json:"detail"`

	// RetrySafe: the same request may be sent again as it is.
	RetrySafe bool `json:"retry_safe"`
}

// soldOut is the type of the problem that is a refusal: nothing left to sell.
const soldOut = "/problems/sold-out"

// SoldOut reports whether the problem is that too few units are left.
func (p Problem) SoldOut() bool { return strings.HasSuffix(p.Type, soldOut) }

// String is one line for people.
func (p Problem) String() string {
	switch {
	case p.Title == "" && p.Detail == "":
		return p.Type
	case p.Detail == "":
		return p.Title
	case p.Title == "":
		return p.Detail
	}
	return p.Title + ": " + p.Detail
}

func (r response) problem() Problem {
	var p Problem
	if json.Unmarshal(r.body, &p) != nil {
		return Problem{Detail: fmt.Sprintf("%.200q", r.body)}
	}
	return p
}

// unexpected is the error of an answer that the caller has no use for.
func (r response) unexpected() error {
	if s := r.problem().String(); s != "" {
		return fmt.Errorf("answer %d: %s", r.status, s)
	}
	return fmt.Errorf("answer %d", r.status)
}
