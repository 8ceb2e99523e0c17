package orderhttp

import (
	"strconv"
	"strings"

	"example.com/shop/internal/order"
)

// traceHeader writes steps as Shop-Trace has them:
//
//	begun;at=1763715975000000, read;at=1763715975000320;sku=mug;units=100
//
// in the order in which they were taken, their times in microseconds since 1970.
func traceHeader(steps []order.Step) string {
	var b strings.Builder
	for i, s := range steps {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s.Name + ";at=" + strconv.FormatInt(s.At.UnixMicro(), 10))
		if s.SKU != "" {
			b.WriteString(";sku=" + s.SKU)
		}
		if s.Known {
			b.WriteString(";units=" + strconv.FormatInt(s.Units, 10))
		}
	}
	return b.String()
}
