package order

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// "Validate reports the first rule that r breaks."
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
		"longest thinking":     {func(r *Request) { r.Think = MaxThinking }, nil},
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
		"most units of a SKU":  {func(r *Request) { r.Lines = []RequestLine{{"mug", 999}, {"hat", 1000}, {"mug", 1}} }, nil},
		"too many of a SKU":    {func(r *Request) { r.Lines = []RequestLine{{"mug", 1000}, {"hat", 1}, {"mug", 1}} }, ErrInvalid},
		"second line is wrong": {func(r *Request) { r.Lines = []RequestLine{{"mug", 1}, {"hat", 0}} }, ErrInvalid},
		"wrong sum is right":   {func(r *Request) { r.Lines = []RequestLine{{"mug", 2}, {"mug", -1}} }, ErrInvalid},
		"zero units":           {func(r *Request) { r.Lines[0].Units = 0 }, ErrInvalid},
		"negative units":       {func(r *Request) { r.Lines[0].Units = -1 }, ErrInvalid},
		"too many units":       {func(r *Request) { r.Lines[0].Units = MaxUnits + 1 }, ErrInvalid},
		"huge units":           {func(r *Request) { r.Lines[0].Units = math.MaxInt64 }, ErrInvalid},
		"thinks backwards":     {func(r *Request) { r.Think = -1 }, ErrInvalid},
		"thinks too long":      {func(r *Request) { r.Think = MaxThinking + time.Nanosecond }, ErrInvalid},
	} {
		r := Request{Buyer: "ann", Key: "k1", Lines: []RequestLine{{SKU: "mug", Units: 1}}}
		c.change(&r)
		if err := r.Validate(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// "one line for each SKU, at the place of its first, with the units of all of
// them", and the request it was made from stays as it is.
func TestRequest_merged(t *testing.T) {
	t.Parallel()
	sent := []RequestLine{{"mug", 1}, {"hat", 2}, {"mug", 3}, {"cup", 4}, {"hat", 5}}
	r := Request{Lines: slices.Clone(sent)}
	got := r.merged()
	if want := []RequestLine{{"mug", 4}, {"hat", 7}, {"cup", 4}}; !slices.Equal(got.Lines, want) {
		t.Errorf("got %v, want %v", got.Lines, want)
	}
	if want := []string{"mug", "hat", "cup"}; !slices.Equal(got.skus(), want) {
		t.Errorf("got %v, want %v", got.skus(), want)
	}
	if !slices.Equal(r.Lines, sent) {
		t.Errorf("the request became %v, it was %v", r.Lines, sent)
	}
}

// "It covers what is bought, not how the shop goes about it."
func TestRequest_fingerprint(t *testing.T) {
	t.Parallel()
	base := Request{Buyer: "ann", Key: "k1", Lines: []RequestLine{{"mug", 1}, {"hat", 2}}}
	same := base
	same.Strategy, same.Think = "none", time.Millisecond
	if base.fingerprint() != same.fingerprint() {
		t.Error("the strategy changes the fingerprint")
	}
	seen := map[string][]RequestLine{}
	for _, lines := range [][]RequestLine{
		{{"mug", 1}, {"hat", 2}}, {{"mug", 2}, {"hat", 1}}, {{"mug", 1}}, {{"mug", 11}}, {{"mug 1", 1}}, {{"mug1", 1}},
		{{"mug\" 1\n\"hat", 2}}, nil,
	} {
		f := Request{Lines: lines}.fingerprint()
		if other, found := seen[f]; found {
			t.Errorf("%v and %v have the same fingerprint", lines, other)
		}
		if len(f) != 64 {
			t.Errorf("%v: got %d characters, want 64", lines, len(f))
		}
		seen[f] = lines
	}
}
