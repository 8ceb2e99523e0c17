package buyers

import (
	"errors"
	"testing"
	"time"

	"example.com/shop/loadtest/shopclient"
)

func TestRetry_pause(t *testing.T) {
	t.Parallel()
	rule := Retry{Tries: 10, Base: 50 * time.Millisecond, Limit: 4 * time.Second}
	const none = -1
	tests := []struct {
		name   string
		tries  int
		asked  time.Duration
		random float64
		want   time.Duration
	}{
		{"the first pause is short", 1, none, 0, 50 * time.Millisecond},
		{"each is twice the one before", 3, none, 0, 200 * time.Millisecond},
		{"up to the limit", 9, none, 0, 4 * time.Second},
		{"also after many tries", 100, none, 0, 4 * time.Second},
		{"up to half is added at random", 2, none, 1, 150 * time.Millisecond},
		{"what the shop asks for is the least", 1, time.Second, 0, time.Second},
		{"and is spread as well", 1, time.Second, 1, 1500 * time.Millisecond},
		{"even a zero is", 1, 0, 1, 25 * time.Millisecond},
		{"a shop that asks for an hour gets the limit", 1, time.Hour, 0, 4 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			random := func() float64 { return tt.random }
			if got := rule.pause(tt.tries, tt.asked, random); got != tt.want {
				t.Errorf("pause(%d, %v, %v): got %v, want %v", tt.tries, tt.asked, tt.random, got, tt.want)
			}
		})
	}
}

func Test_read(t *testing.T) {
	t.Parallel()
	const silent = -1
	problem := func(slug string) shopclient.Problem { return shopclient.Problem{Type: "/problems/" + slug} }
	tests := []struct {
		name   string
		answer shopclient.Answer
		err    error
		want   reading
	}{
		{"an order", shopclient.Answer{Status: 201, OrderID: "o"}, nil, placed},
		{"an order without an id", shopclient.Answer{Status: 201, RetryAfter: silent}, nil, unclear},
		{"sold out", shopclient.Answer{Status: 409, Problem: problem("sold-out"), RetryAfter: silent}, nil, soldOut},
		{"its twin still runs", shopclient.Answer{Status: 409, Problem: problem("in-progress"), RetryAfter: time.Second}, nil, unclear},
		{"another conflict", shopclient.Answer{Status: 409, Problem: problem("state"), RetryAfter: silent}, nil, refused},
		{"too many requests", shopclient.Answer{Status: 429, RetryAfter: time.Second}, nil, busy},
		{"busy", shopclient.Answer{Status: 503, RetryAfter: time.Second}, nil, unclear},
		{"the shop's own fault", shopclient.Answer{Status: 500, RetryAfter: silent}, nil, unclear},
		{"a load balancer lost the shop", shopclient.Answer{Status: 502, RetryAfter: silent}, nil, unclear},
		{"too slow a body", shopclient.Answer{Status: 408, Problem: shopclient.Problem{RetrySafe: true}, RetryAfter: silent}, nil, unclear},
		{"malformed", shopclient.Answer{Status: 400, RetryAfter: silent}, nil, refused},
		{"a redirect leads nowhere", shopclient.Answer{Status: 302, RetryAfter: silent}, nil, refused},
		{"no answer", shopclient.Answer{}, errors.New("cut"), unclear},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := read(tt.answer, tt.err); got != tt.want {
				t.Errorf("read(%+v, %v): got %v, want %v", tt.answer, tt.err, got, tt.want)
			}
		})
	}
}
