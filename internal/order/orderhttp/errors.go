package orderhttp

import "errors"

// What can be wrong with a request before the service sees it.
var (
	errNoRoute   = errors.New("nothing is here")
	errNoMethod  = errors.New("this path does not take this method; the Allow header lists what it takes")
	errMalformed = errors.New("malformed request")
	errTooLarge  = errors.New("body is too large")
	errMediaType = errors.New("unsupported media type")
	errSlowBody  = errors.New("the body did not arrive in time")
	errNoSKU     = errors.New("no such SKU")
	errLabOff    = errors.New("teaching mode is off")
	errLabHeader = errors.New("header is for teaching mode")
)
