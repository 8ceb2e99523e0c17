package e2e_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// token returns what makes the bearer a buyer.
func (s *shop) token(buyer string) string {
	token, _, err := s.tokens.Mint(buyer, time.Hour)
	if err != nil {
		s.t.Error(err)
	}
	return token
}

// request is one to an instance.
type request struct {
	on           int    // counted from 0; those beyond the last begin again with the first
	buyer        string // empty: it is the operator's, to the operator's listener
	token        string // empty: that of the buyer or the operator
	method, path string
	body, key    string // empty: none
}

// answer is what came back. Exactly one of status and err is not zero.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// send sends a request and writes down what the answer acknowledges. It may be used by many goroutines.
func (s *shop) send(r request) answer {
	a := s.ask(r)
	s.book.note(r, a)
	return a
}

// ask is send, off the record.
func (s *shop) ask(r request) answer {
	instance := s.instances[r.on%len(s.instances)]
	client, url, token := s.front, instance.URL(), r.token
	if r.buyer == "" {
		client, url = s.back, "http://"+instance.OperatorAddr()
		if token == "" {
			token = operatorToken
		}
	}
	if token == "" {
		token = s.token(r.buyer)
	}
	sent, err := http.NewRequestWithContext(context.Background(), r.method, url+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{err: err}
	}
	sent.Header.Set("Authorization", "Bearer "+token)
	if r.body != "" {
		sent.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		sent.Header.Set("Idempotency-Key", r.key)
	}
	w, err := client.Do(sent)
	if err != nil {
		return answer{err: err}
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		return answer{err: err}
	}
	return answer{status: w.StatusCode, header: w.Header, body: string(text)}
}

// tryAgain is how long a buyer waits before asking another instance: less than the Retry-After of a second, so that
// tests are short.
const tryAgain = 50 * time.Millisecond

// insist asks one instance after the other until one answers with something else than 503, with the same key each time.
func (s *shop) insist(on int, ask func(on int) answer) answer {
	for end := time.Now().Add(2 * patience); ; on++ {
		a := ask(on)
		if a.err == nil && a.status != http.StatusServiceUnavailable && a.problem() != "in-progress" || time.Now().After(end) {
			return a
		}
		time.Sleep(tryAgain)
	}
}
