package orderhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
)

// maxBody is how many bytes a request's body may have.
const maxBody = 64 << 10

// decode reads the body, which must be one JSON object, into v. A field that v
// does not have is an error.
func decode(c *gin.Context, v any) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	return parse(body, v)
}

// readBody reads a body that says it is JSON.
func readBody(c *gin.Context) ([]byte, error) {
	if err := wantJSON(c); err != nil {
		return nil, err
	}
	body, err := readAll(c)
	if err == nil {
		return body, nil
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, fmt.Errorf("%w: at most %d bytes are allowed", errTooLarge, maxBody)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errSlowBody
	}
	return nil, fmt.Errorf("%w: the body ends too early", errMalformed)
}

// readAll reads a body. One that announces that it is short gets no more room than that.
func readAll(c *gin.Context) ([]byte, error) {
	if announced := c.Request.ContentLength; announced > 0 && announced <= shortBody {
		body := make([]byte, announced)
		_, err := io.ReadFull(c.Request.Body, body)
		return body, err
	}
	return io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
}

// parse is decode for a body that was read.
func parse(body []byte, v any) error {
	if !utf8.Valid(body) {
		return fmt.Errorf("%w: the body is not UTF-8", errMalformed)
	}
	if err := checkStrict(body); err != nil {
		return fmt.Errorf("%w: body: %w", errMalformed, err)
	}
	reader := json.NewDecoder(bytes.NewReader(body))
	reader.DisallowUnknownFields()
	if err := reader.Decode(v); err != nil {
		return fmt.Errorf("%w: body: %s", errMalformed, plainWords(err))
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
	if err != nil || kind != "application/json" {
		return fmt.Errorf("%w: want the header Content-Type: application/json", errMediaType)
	}
	if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return fmt.Errorf("%w: want charset utf-8", errMediaType)
	}
	if coding != "" && coding != "identity" {
		return fmt.Errorf("%w: want a body without Content-Encoding", errMediaType)
	}
	return nil
}

// plainWords says what is wrong without naming types of this program.
func plainWords(err error) string {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		if wrong.Field == "" {
			return "want an object, not " + wrong.Value
		}
		if wrong.Type == reflect.TypeFor[count]() {
			return fmt.Sprintf("%s: want a whole number, not %s", wrong.Field, wrong.Value)
		}
		return fmt.Sprintf("%s must not be %s", wrong.Field, wrong.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
