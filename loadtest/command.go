package main

import (
	"net/url"
	"strconv"
	"strings"
)

// command is what repeats the run. Addresses of servers may hold passwords and
// are left to whoever repeats it.
func (f flags) command() string {
	words := []string{
		"go run ./loadtest",
		"--strategies", strings.Join(f.Strategies, ","),
		"--buyers", strconv.Itoa(f.Buyers),
		"--stock", strconv.FormatInt(f.Stock, 10),
		"--think", f.Think.String(),
	}
	words = append(words, f.words()...)
	if f.Target == "" {
		words = append(words, "--instances", strconv.Itoa(f.instances()))
	} else {
		words = append(words, "--target", withoutPassword(f.Target))
	}
	words = append(words, f.whereabouts()...)
	if f.Timeout != usualTimeout {
		words = append(words, "--timeout", f.Timeout.String())
	}
	return strings.Join(words, " ")
}

func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "URL"
	}
	return u.Redacted()
}
