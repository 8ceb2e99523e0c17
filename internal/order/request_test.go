package order

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// "Validate returns an error for the first rule that r breaks"
func TestRequest_Validate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Request)
		want   error
	}{
		"valid":                {func(*Request) {}, nil},
		"longest key":          {func(r *Request) { r.Key = strings.Repeat("k", MaxKey) }, nil},
		"any printable key":    {func(r *Request) { r.Key = ` !"#$%&'()*+,-./:;<=>?@[\]^_{|}~` + "`" }, nil},
		"most units":           {func(r *Request) { r.Lines[0].Units = MaxUnits }, nil},
		"address as buyer":     {func(r *Request) { r.Buyer = "ann.o_k-9@example.com" }, nil},
		"no key":               {func(r *Request) { r.Key = "" }, ErrKeyMissing},
		"key too long":         {func(r *Request) { r.Key = strings.Repeat("k", MaxKey+1) }, ErrKeyInvalid},
		"key with line break":  {func(r *Request) { r.Key = "a\nb" }, ErrKeyInvalid},
		"key with tab":         {func(r *Request) { r.Key = "a\tb" }, ErrKeyInvalid},
		"key with DEL":         {func(r *Request) { r.Key = "a\x7fb" }, ErrKeyInvalid},
		"key beyond ASCII":     {func(r *Request) { r.Key = "schlüssel" }, ErrKeyInvalid},
		"key that is no text":  {func(r *Request) { r.Key = "a\xffb" }, ErrKeyInvalid},
		"no buyer":             {func(r *Request) { r.Buyer = "" }, ErrBuyer},
		"buyer too long":       {func(r *Request) { r.Buyer = strings.Repeat("a", 65) }, ErrBuyer},
		"buyer with a space":   {func(r *Request) { r.Buyer = "an n" }, ErrBuyer},
		"buyer and line break": {func(r *Request) { r.Buyer = "ann\n" }, ErrBuyer},
		"no lines":             {func(r *Request) { r.Lines = nil }, ErrInvalid},
		"most lines":           {func(r *Request) { r.Lines = slices.Repeat(r.Lines, MaxLines) }, nil},
		"too many lines":       {func(r *Request) { r.Lines = slices.Repeat(r.Lines, MaxLines+1) }, ErrInvalid},
		"most units of a SKU": {func(r *Request) {
			r.Lines = []Line{{SKU: "mug", Units: 999}, {SKU: "hat", Units: 1000}, {SKU: "mug", Units: 1}}
		}, nil},
		"too many of a SKU": {func(r *Request) {
			r.Lines = []Line{{SKU: "mug", Units: 1000}, {SKU: "hat", Units: 1}, {SKU: "mug", Units: 1}}
		}, ErrInvalid},
		"second line is wrong": {func(r *Request) { r.Lines = []Line{{SKU: "mug", Units: 1}, {SKU: "hat", Units: 0}} }, ErrInvalid},
		"wrong sum is right":   {func(r *Request) { r.Lines = []Line{{SKU: "mug", Units: 2}, {SKU: "mug", Units: -1}} }, ErrInvalid},
		"zero units":           {func(r *Request) { r.Lines[0].Units = 0 }, ErrInvalid},
		"negative units":       {func(r *Request) { r.Lines[0].Units = -1 }, ErrInvalid},
		"too many units":       {func(r *Request) { r.Lines[0].Units = MaxUnits + 1 }, ErrInvalid},
		"huge units":           {func(r *Request) { r.Lines[0].Units = math.MaxInt64 }, ErrInvalid},
	} {
		r := Request{Buyer: "ann", Key: "k1", Lines: []Line{{SKU: "mug", Units: 1}}}
		c.change(&r)
		if err := r.Validate(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}
