package contract

import (
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// checkRequest finds what the shop accepts and the document does not.
func checkRequest(r *http.Request, route *routers.Route, parameters map[string]string) error {
	asked := r.Clone(r.Context())
	// A parameter without a value counts as absent.
	query := asked.URL.Query()
	maps.DeleteFunc(query, func(_ string, values []string) bool { return strings.Join(values, "") == "" })
	asked.URL.RawQuery = query.Encode()
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return fmt.Errorf("read the request again: %w", err)
		}
		asked.Body = body
	}
	err := openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request:    asked,
		Route:      route,
		PathParams: parameters,
		Options: &openapi3filter.Options{
			ExcludeRequestBody:  r.GetBody == nil,
			AuthenticationFunc:  openapi3filter.NoopAuthenticationFunc,
			SkipSettingDefaults: true,
		},
	})
	if err != nil {
		return fmt.Errorf("%s %s was accepted: %w", r.Method, r.URL.Path, err)
	}
	return nil
}
