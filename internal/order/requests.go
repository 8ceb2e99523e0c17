package order

import "context"

type requestsKey struct{}

// WithRequests returns a ctx for work that is done for several requests at once, such as
// a lane's batch, or for none: what observes the work finds the contexts of the requests
// in it. requests is asked at every step, by many goroutines.
func WithRequests(ctx context.Context, requests func() []context.Context) context.Context {
	return context.WithValue(ctx, requestsKey{}, requests)
}

// Requests returns the contexts of the requests that ctx works for: those of
// WithRequests, or ctx itself.
func Requests(ctx context.Context) []context.Context {
	if requests, ok := ctx.Value(requestsKey{}).(func() []context.Context); ok {
		return requests()
	}
	return []context.Context{ctx}
}

// IsShared reports whether ctx works for the requests of WithRequests.
func IsShared(ctx context.Context) bool { return ctx.Value(requestsKey{}) != nil }
