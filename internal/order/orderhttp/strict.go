package orderhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

const maxDepth = 8

// fieldRule keeps encoding/json from taking "SKU" or "ſku" for "sku".
var fieldRule = regexp.MustCompile(`^[a-z][a-z_]*$`)

// checkStrict refuses what encoding/json lets pass: repeated and oddly spelled
// fields, null, deep nesting, and anything after the object.
func checkStrict(body []byte) error {
	reader := json.NewDecoder(bytes.NewReader(body))
	reader.UseNumber() // the size of numbers is checked where they are used
	first, err := reader.Token()
	if err != nil {
		return jsonError(err)
	}
	if first != json.Delim('{') {
		return errors.New("want one JSON object")
	}
	if err := walkObject(reader, 1); err != nil {
		return err
	}
	if _, err := reader.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// walkObject reads up to the end of an object whose beginning was read.
func walkObject(reader *json.Decoder, depth int) error {
	seen := map[string]bool{}
	for reader.More() {
		token, err := reader.Token()
		if err != nil {
			return jsonError(err)
		}
		name, _ := token.(string)
		if !fieldRule.MatchString(name) {
			return fmt.Errorf("unknown field %.40q", name)
		}
		if seen[name] {
			return fmt.Errorf("field %.40q comes twice", name)
		}
		seen[name] = true
		if err := walkValue(reader, depth); err != nil {
			return err
		}
	}
	_, err := reader.Token()
	return jsonError(err)
}

func walkArray(reader *json.Decoder, depth int) error {
	for reader.More() {
		if err := walkValue(reader, depth); err != nil {
			return err
		}
	}
	_, err := reader.Token()
	return jsonError(err)
}

func walkValue(reader *json.Decoder, depth int) error {
	token, err := reader.Token()
	if err != nil {
		return jsonError(err)
	}
	if depth >= maxDepth {
		return errors.New("nested too deeply")
	}
	switch token {
	case nil:
		return errors.New("null is not allowed; leave the field out")
	case json.Delim('{'):
		return walkObject(reader, depth+1)
	case json.Delim('['):
		return walkArray(reader, depth+1)
	}
	return nil
}

// jsonError says that the text ends too early where io.EOF would not be clear.
func jsonError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON ends too early")
	}
	return err
}
