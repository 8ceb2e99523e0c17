package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

const algorithm = "HS256"

// alphabet is base64url's. Go's decoder skips line breaks, so that one token
// would have many spellings.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// checkShape refuses what the library lets pass, before it computes anything.
func checkShape(token string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return refuse(ErrMalformed, "want three parts")
	}
	for _, part := range parts {
		if strings.Trim(part, alphabet) != "" {
			return refuse(ErrMalformed, "a part is not base64url")
		}
	}
	header, err := decodeObject(parts[0])
	if err != nil {
		return refuse(ErrMalformed, "header: "+err.Error())
	}
	if err := checkHeader(header); err != nil {
		return err
	}
	if _, err := decodeObject(parts[1]); err != nil {
		return refuse(ErrMalformed, "claims: "+err.Error())
	}
	return nil
}

// checkHeader pins the algorithm. Fields that name keys are ignored, as there is
// one key; crit must not be, and asks for what this package does not know.
func checkHeader(header map[string]json.RawMessage) error {
	if alg, ok := text(header["alg"]); !ok || alg != algorithm {
		return refuse(ErrAlgorithm, "")
	}
	if raw, given := header["typ"]; given {
		if typ, ok := text(raw); !ok || !strings.EqualFold(typ, "JWT") {
			return refuse(ErrMalformed, "its typ is not JWT")
		}
	}
	if _, given := header["crit"]; given {
		return refuse(ErrMalformed, "crit demands an extension")
	}
	return nil
}

func decodeObject(part string) (map[string]json.RawMessage, error) {
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return nil, errors.New("not base64url")
	}
	return readObject(decoded)
}

// readObject reads one JSON object, no name of which comes twice. Its errors
// quote nothing.
func readObject(object []byte) (map[string]json.RawMessage, error) {
	bad := errors.New("want one JSON object")
	if !utf8.Valid(object) {
		return nil, errors.New("invalid UTF-8")
	}
	reader := json.NewDecoder(bytes.NewReader(object))
	if first, err := reader.Token(); err != nil || first != json.Delim('{') {
		return nil, bad
	}
	fields := map[string]json.RawMessage{}
	for reader.More() {
		token, err := reader.Token()
		if err != nil {
			return nil, bad
		}
		name, _ := token.(string)
		if _, twice := fields[name]; twice {
			return nil, errors.New("a name comes twice")
		}
		var value json.RawMessage
		if err := reader.Decode(&value); err != nil {
			return nil, bad
		}
		fields[name] = value
	}
	if _, err := reader.Token(); err != nil {
		return nil, bad
	}
	if _, err := reader.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return fields, nil
}

// text reads a JSON string; null and all else is none.
func text(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}
