package orderhttp

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
)

// count is a whole number in JSON. One beyond an int64 becomes the nearest that
// fits, which every rule of the service refuses: too many, not malformed.
type count int64

func (n *count) UnmarshalJSON(text []byte) error {
	value, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err == nil:
	case !errors.Is(err, strconv.ErrRange):
		// Of this error, encoding/json fills in the field.
		return &json.UnmarshalTypeError{Value: string(text[:min(len(text), 40)]), Type: reflect.TypeFor[count]()}
	case text[0] == '-':
		value = math.MinInt64
	default:
		value = math.MaxInt64
	}
	*n = count(value)
	return nil
}
