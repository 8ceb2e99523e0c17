package main

import (
	"context"
	"errors"
	"reflect"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// An order or a cancellation whose answer was lost may still be on its way into the
// books. A shop ends each transaction within half a minute.
const (
	settlePause = 500 * time.Millisecond
	settleLimit = time.Minute
)

var errUnsettled = errors.New("the books still change, though nobody buys any more")

// settled repeats an audit until two in a row are alike.
func settled(audit func(context.Context) (shopclient.Audit, error)) func(context.Context) (shopclient.Audit, error) {
	return func(ctx context.Context) (shopclient.Audit, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, settleLimit, errUnsettled)
		defer cancel()
		books, err := audit(ctx)
		for err == nil {
			select {
			case <-time.After(settlePause):
			case <-ctx.Done():
				return books, context.Cause(ctx)
			}
			before := books
			books, err = audit(ctx)
			if err == nil && reflect.DeepEqual(books, before) {
				return books, nil
			}
		}
		return books, err
	}
}
