package orderhttp

import (
	"errors"
	"fmt"
	"time"
)

// What can be wrong with a request before the service sees it.
var (
	errNoRoute    = errors.New("nothing is here")
	errNoMethod   = errors.New("this path does not take this method; the Allow header lists what it takes")
	errMalformed  = errors.New("malformed request")
	errTooLarge   = errors.New("body is too large")
	errMediaType  = errors.New("unsupported media type")
	errSlowBody   = errors.New("the body did not arrive in time")
	errNoToken    = errors.New("a token is missing")
	errNotOurs    = errors.New("this is not the operator's token")
	errNoDelivery = errors.New("a delivery's idempotency key is missing")
	errNoSKU      = errors.New("no such SKU")
	errTooMany    = errors.New("too many requests of one buyer")
	errUncounted  = errors.New("requests of this buyer cannot be counted")
	errOverloaded = errors.New("too many requests at a time")
	errLabOff     = errors.New("teaching mode is off")
	errLabHeader  = errors.New("header is for teaching mode")
)

// tooManyError is what a buyer is told who asks for too much.
type tooManyError struct{ wait time.Duration }

func (e *tooManyError) Error() string { return fmt.Sprintf("%v, for %v", errTooMany, e.wait) }
func (e *tooManyError) Unwrap() error { return errTooMany }

// seconds is a wait in whole ones, rounded up.
func seconds(wait time.Duration) int { return int((wait + time.Second - 1) / time.Second) }
