package tracing

import (
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Where traces go; the first that is set counts.
const (
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	endpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
)

// wanted reports whether the environment asks for traces.
func wanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if exporter := os.Getenv("OTEL_TRACES_EXPORTER"); exporter != "" {
		return exporter != "none"
	}
	return os.Getenv(tracesEndpoint) != "" || os.Getenv(endpoint) != ""
}

// checkEndpoint refuses an address that the exporter would send nothing to, and say
// so only in the log: it takes localhost:4318 for a scheme and a path.
func checkEndpoint() error {
	for _, name := range []string{tracesEndpoint, endpoint} {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "unix" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return fmt.Errorf("traces: %s: want a URL with its scheme, such as http://localhost:4318", name)
		}
		return nil
	}
	return nil
}
