package orderhttp

import (
	"fmt"
	"strconv"

	"github.com/gin-gonic/gin"
)

// inPages are the parameters of a list.
func inPages() []string { return []string{"cursor", "limit"} }

// Sizes of a page.
const (
	defaultPage = 50
	maxPage     = 100
)

// page reads behind which key a page begins, empty for the first, and how many
// items it has.
func page(c *gin.Context, kind cursor) (after string, limit int, err error) {
	limit = defaultPage
	if text := c.Query("limit"); text != "" {
		limit, err = strconv.Atoi(text)
		if err != nil || limit < 1 || limit > maxPage {
			return "", 0, fmt.Errorf("%w: limit %.20q: want 1 to %d", errMalformed, text, maxPage)
		}
	}
	after, err = kind.read(c.Query("cursor"))
	return after, limit, err
}

// cut returns what a page of at most limit items shows of those found, and the
// cursor of the next page, empty for none. One more must have been asked for than
// is shown: it tells that there is a next page.
func cut[T any](kind cursor, found []T, limit int, key func(T) string) (shown []T, next string) {
	if len(found) <= limit {
		return found, ""
	}
	return found[:limit], kind.after(key(found[limit-1]))
}
