package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
)

// Names of headers.
const (
	headerKey       = "Idempotency-Key"
	headerBuyer     = "Shop-Buyer"
	headerRequestID = "X-Request-Id"
)

// header returns the value of a header that may come at most once, and whether it came.
func header(c *gin.Context, name string) (value string, given bool, err error) {
	values := c.Request.Header.Values(name)
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", true, fmt.Errorf("%w: header %s comes %d times", errMalformed, name, len(values))
}

// maxBody is how many bytes a request's body may have.
const maxBody = 64 << 10

// decode reads the body, which must be one JSON object, into the struct that v points to.
func decode(c *gin.Context, v any) error {
	if err := wantJSON(c); err != nil {
		return err
	}
	body, err := readBody(c)
	if err != nil {
		return err
	}
	return parse(body, v)
}

// wantNoBody accepts no body, and an empty object, which some clients send.
func wantNoBody(c *gin.Context) error {
	if c.Request.ContentLength == 0 {
		return nil
	}
	body, err := readBody(c)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := wantJSON(c); err != nil {
		return err
	}
	if err := parse(body, new(struct{})); err != nil {
		return fmt.Errorf("%w; this call takes no body", err)
	}
	return nil
}

// wantJSON accepts application/json, in UTF-8 and not compressed.
func wantJSON(c *gin.Context) error {
	text, _, err := header(c, "Content-Type")
	if err != nil {
		return err
	}
	coding, _, err := header(c, "Content-Encoding")
	if err != nil {
		return err
	}
	if text == "application/json" && coding == "" {
		return nil // as nearly all requests have it
	}
	kind, parameters, err := mime.ParseMediaType(text)
	switch charset := parameters["charset"]; {
	case err != nil || kind != "application/json":
		return fmt.Errorf("%w: want the header Content-Type: application/json", errMediaType)
	case charset != "" && !strings.EqualFold(charset, "utf-8"):
		return fmt.Errorf("%w: want charset utf-8", errMediaType)
	case coding != "" && coding != "identity":
		return fmt.Errorf("%w: want a body without Content-Encoding", errMediaType)
	}
	return nil
}

func readBody(c *gin.Context) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	if err == nil {
		return body, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fmt.Errorf("%w: at most %d bytes are allowed", errTooLarge, maxBody)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errSlowBody
	}
	return nil, fmt.Errorf("%w: the body ends too early", errMalformed)
}

// parse reads JSON strictly: one object, in UTF-8, no unknown or repeated field, no null.
func parse(body []byte, v any) error {
	if !utf8.Valid(body) {
		return fmt.Errorf("%w: the body is not UTF-8", errMalformed)
	}
	reader := json.NewDecoder(bytes.NewReader(body))
	reader.DisallowUnknownFields()
	if err := reader.Decode(v); err != nil {
		return fmt.Errorf("%w: body: %s", errMalformed, explain(err))
	}
	if rest := body[reader.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return fmt.Errorf("%w: body: something follows the object", errMalformed)
	}
	if err := checkNames(body); err != nil {
		return fmt.Errorf("%w: body: %w", errMalformed, err)
	}
	return nil
}

// explain says what is wrong without naming types of this program.
func explain(err error) string {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return strings.TrimPrefix(err.Error(), "json: ")
	case wrong.Field == "":
		return "want an object, not " + wrong.Value
	case wrong.Type.Kind() == reflect.Int64:
		return fmt.Sprintf("%s: want a whole number, not %.40s", wrong.Field, strings.TrimPrefix(wrong.Value, "number "))
	}
	return fmt.Sprintf("%s must not be %.40s", wrong.Field, wrong.Value)
}

// checkNames refuses what encoding/json lets pass in JSON that fits a struct: null, a field
// that comes twice, and "SKU" or "\u0073ku" for "sku". (A json.Decoder's tokens would do, at 60
// allocations for an order.)
func checkNames(body []byte) error {
	const isArray = -1
	names := make([][]byte, 0, 16) // in the open objects, of the outermost first
	open := make([]int, 0, 8)      // where the names of each open object begin; isArray for an array
	isName := false                // of the next string
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{':
			open, isName = append(open, len(names)), true
		case '[':
			open, isName = append(open, isArray), false
		case '}', ']':
			if begin := open[len(open)-1]; begin != isArray {
				names = names[:begin]
			}
			open = open[:len(open)-1]
		case ',':
			isName = open[len(open)-1] != isArray
		case 'n': // neither true, false nor a number has one
			return errors.New("null is not allowed; leave the field out")
		case '"':
			begin := i + 1
			for i = begin; body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
			if !isName {
				continue
			}
			name := body[begin:i]
			if len(bytes.Trim(name, "abcdefghijklmnopqrstuvwxyz_")) > 0 {
				return fmt.Errorf("unknown field %q", name)
			}
			if slices.ContainsFunc(names[open[len(open)-1]:], func(n []byte) bool { return bytes.Equal(n, name) }) {
				return fmt.Errorf("field %q comes twice", name)
			}
			names, isName = append(names, name), false
		}
	}
	return nil
}

// checkQuery refuses parameters of the URL other than these, and one that comes twice: a
// mistyped filter must not be answered as if there were none.
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
		case !slices.Contains(names, name):
			return fmt.Errorf("%w: parameter %.40q: this call takes %s", errMalformed, name, cmp.Or(strings.Join(names, ", "), "none"))
		case len(values[name]) > 1:
			return fmt.Errorf("%w: parameter %s comes %d times", errMalformed, name, len(values[name]))
		}
	}
	return nil
}

const (
	defaultPage = 50 // items
	maxPage     = 100
)

// list says how a list makes its cursors: of the key of the last item that was shown, behind
// the list's name, so that a cursor of one list is refused by every other.
type list[T any] struct {
	name  string
	valid func(key string) bool
	key   func(item T) string
}

// page returns the items of the page that the URL asks for, and the cursor of the next page,
// empty for none. It finds one item more than it shows: that tells whether there is a next page.
func page[T any](c *gin.Context, l list[T], find func(ctx context.Context, after string, limit int) ([]T, error)) (shown []T, next string, err error) {
	limit := defaultPage
	if text := c.Query("limit"); text != "" {
		limit, err = strconv.Atoi(text)
		if err != nil || limit < 1 || limit > maxPage {
			return nil, "", fmt.Errorf("%w: limit %.20q: want 1 to %d", errMalformed, text, maxPage)
		}
	}
	after := ""
	if text := c.Query("cursor"); text != "" {
		plain, err := base64.RawURLEncoding.Strict().DecodeString(text)
		name, key, _ := strings.Cut(string(plain), ":")
		if err != nil || name != l.name || !l.valid(key) {
			return nil, "", fmt.Errorf("%w: cursor: want a next_cursor as this list answered it", errMalformed)
		}
		after = key
	}
	found, err := find(c.Request.Context(), after, limit+1)
	if err != nil || len(found) <= limit {
		return found, "", err
	}
	last := l.key(found[limit-1])
	return found[:limit], base64.RawURLEncoding.EncodeToString([]byte(l.name + ":" + last)), nil
}
