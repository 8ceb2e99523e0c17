package orderhttp

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// wantQuery refuses a request whose URL has other parameters than these, or one of
// them twice. Who mistypes a filter must not be answered as if there were none.
func (a *api) wantQuery(names []string) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := checkQuery(c.Request.URL.RawQuery, names); err != nil {
			a.fail(c, err)
		}
	}
}

func checkQuery(query string, names []string) error {
	if query == "" {
		return nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("%w: the query of the URL cannot be read", errMalformed)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case len(names) == 0:
			return fmt.Errorf("%w: parameter %.40q: this call takes none", errMalformed, name)
		case !slices.Contains(names, name):
			return fmt.Errorf("%w: parameter %.40q: this call takes %s", errMalformed, name, strings.Join(names, ", "))
		case len(values[name]) > 1:
			return fmt.Errorf("%w: parameter %s comes %d times", errMalformed, name, len(values[name]))
		}
	}
	return nil
}
