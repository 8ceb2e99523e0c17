package httpapi

import (
	"cmp"
	"context"
	"encoding/base64"
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

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// maxBody is how many bytes a request's body may have.
const maxBody = 64 << 10

// noBody is decoded by calls without a body. Some clients send an empty object, which is allowed.
type noBody struct{}

// decode reads the body, JSON in UTF-8, into the struct that v points to. It reads strictly: one object, no unknown or
// repeated field, no null.
func decode(c *call, v any) error {
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	_, mayBeEmpty := v.(*noBody)
	switch {
	case tooLarge:
		return fmt.Errorf("%w: at most %d bytes are allowed", errTooLarge, maxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlowBody
	case err != nil:
		return fmt.Errorf("%w: the body ends too early", ErrMalformed)
	case mayBeEmpty && len(body) == 0:
		return nil
	}
	kind, parameters, err := mime.ParseMediaType(c.value("Content-Type"))
	charset := strings.ToLower(cmp.Or(parameters["charset"], "utf-8"))
	coding := cmp.Or(c.value("Content-Encoding"), "identity")
	if err != nil || kind != "application/json" || charset != "utf-8" && charset != "utf8" || coding != "identity" {
		return fmt.Errorf("%w: want the header Content-Type: application/json, UTF-8, and no Content-Encoding", errMediaType)
	}
	if err := json.Unmarshal(body, v, strictly); err != nil {
		return fmt.Errorf("%w: body: %s", ErrMalformed, explain(err))
	}
	return nil
}

// strictly adds to what json refuses anyway, such as a field that comes twice, "SKU" for "sku" and bad UTF-8: unknown
// fields, and null at any depth.
var strictly = json.JoinOptions( //nolint:gochecknoglobals // a constant
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ any) error {
		if d.PeekKind() == jsontext.KindNull {
			return errNull
		}
		return errors.ErrUnsupported // go on as without this function
	})),
)

var errNull = errors.New("null is not allowed; leave the field out")

// explain says what is wrong without naming types of this program.
func explain(err error) string {
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		if wrong.GoType.Kind() == reflect.Int64 && !errors.Is(err, errNull) {
			wrong.Err = errors.New("want a whole number")
		}
		wrong.GoType = nil
	}
	_, text, _ := strings.Cut(err.Error(), ": ") // behind the package's name
	if action, ok := strings.CutPrefix(text, "unable to "); ok {
		text = "cannot " + action // the package says one or the other, by process
	}
	return fmt.Sprintf("%.200s", text)
}

// checkURL refuses impossible names of SKUs and ids of orders, query parameters other than the route's, and repeated
// ones: a mistyped filter must not be ignored.
func checkURL(c *call) error {
	for _, p := range c.Params {
		switch {
		case p.Key == "sku" && !stock.ValidName(p.Value):
			return errNoSKU
		case p.Key == "id" && !validID(p.Value):
			return fmt.Errorf("order %.40q: %w", p.Value, order.ErrNotFound)
		case p.Key == "payment" && order.CheckPaymentID(p.Value) != nil:
			return order.ErrNoPayment
		}
	}
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return fmt.Errorf("%w: the query of the URL cannot be read", ErrMalformed)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(c.route.query, name):
			taken := cmp.Or(strings.Join(c.route.query, ", "), "none")
			return fmt.Errorf("%w: parameter %.40q: this call takes %s", ErrMalformed, name, taken)
		case len(values[name]) > 1:
			return fmt.Errorf("%w: parameter %s comes %d times", ErrMalformed, name, len(values[name]))
		}
	}
	return nil
}

// validID accepts only the canonical form of a UUID, since a database may compare strings less strictly.
func validID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

const (
	defaultPage = 50 // items
	maxPage     = 100
)

// page answers with the page of a list that the URL asks for, and the cursor of the next page. A cursor is the list's
// name and the key of the last item shown: a cursor of one list is refused by every other. page finds one item more
// than it shows, to know whether there is a next page.
func page[T any](c *call, list string, valid func(key string) bool,
	find func(ctx context.Context, after string, limit int) ([]T, error), toJSON func(T) (key string, item any),
) (status int, body any, err error) {
	limit, after := defaultPage, ""
	if text := c.Query("limit"); text != "" {
		limit, err = strconv.Atoi(text)
		if err != nil || limit < 1 || limit > maxPage {
			return 0, nil, fmt.Errorf("%w: limit %.20q: want 1 to %d", ErrMalformed, text, maxPage)
		}
	}
	if text := c.Query("cursor"); text != "" {
		plain, err := base64.RawURLEncoding.Strict().DecodeString(text)
		name, key, _ := strings.Cut(string(plain), ":")
		if err != nil || name != list || !valid(key) {
			return 0, nil, fmt.Errorf("%w: cursor: want a next_cursor as this list answered it", ErrMalformed)
		}
		after = key
	}
	found, err := find(c.Request.Context(), after, limit+1)
	if err != nil {
		return 0, nil, err
	}
	shown := make([]any, min(limit, len(found)))
	last := ""
	for i := range shown {
		last, shown[i] = toJSON(found[i])
	}
	answer := gin.H{list: shown}
	if len(found) > limit {
		answer["next_cursor"] = base64.RawURLEncoding.EncodeToString([]byte(list + ":" + last))
	}
	return http.StatusOK, answer, nil
}
