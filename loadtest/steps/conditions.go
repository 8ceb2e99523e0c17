package steps

import (
	"slices"
	"strings"

	"example.com/shop/loadtest/shopclient"
)

// stopped reports whether a request has come to its stop, also if its shop has let it
// go on meanwhile, for example because its lease ran out.
func stopped(p progress) bool {
	return slices.ContainsFunc(p.events, func(e shopclient.TapeEvent) bool { return strings.HasPrefix(e.Text, "stopped ") })
}

// turnedAway reports whether a request was told that somebody else has the lock, so
// that it waits now.
func turnedAway(p progress) bool {
	return slices.ContainsFunc(p.events, func(e shopclient.TapeEvent) bool {
		return e.Text == "lock-contended" || e.Kind == Redis && strings.HasPrefix(e.Text, "SET") && (e.Answer == "nil" || e.Answer == "0")
	})
}

// doneOrWaits: nothing more will happen to the request before another one goes on.
func doneOrWaits(p progress) bool { return p.done || turnedAway(p) }

// took reports whether the request has taken a step.
func took(step string) func(progress) bool {
	return func(p progress) bool {
		return slices.ContainsFunc(p.events, func(e shopclient.TapeEvent) bool { return e.Kind == Step && e.Text == step })
	}
}

// started reports whether the request has sent a statement of this kind.
func started(verb string) func(progress) bool {
	return func(p progress) bool {
		return slices.ContainsFunc(p.events, func(e shopclient.TapeEvent) bool { return e.Kind == SQL && strings.HasPrefix(e.Text, verb) })
	}
}

func either(these ...func(progress) bool) func(progress) bool {
	return func(p progress) bool {
		return slices.ContainsFunc(these, func(is func(progress) bool) bool { return is(p) })
	}
}
