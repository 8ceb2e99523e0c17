package logs

import "context"

type requestKey struct{}

// WithRequest returns a context of the request with this id.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// Request returns the id of the request that ctx belongs to; empty if it belongs
// to none.
func Request(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}
