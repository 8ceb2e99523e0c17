package contract

import "github.com/getkin/kin-openapi/openapi3"

// keepServer removes the operations that are not at the server with this URL.
func keepServer(doc *openapi3.T, url string) {
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if !isAt(url, doc, item, operation) {
				item.SetOperation(method, nil)
			}
		}
		if len(item.Operations()) == 0 {
			doc.Paths.Delete(path)
		}
	}
}

// isAt looks for the URL in the servers that are named closest to the operation.
func isAt(url string, doc *openapi3.T, item *openapi3.PathItem, operation *openapi3.Operation) bool {
	servers := doc.Servers
	if len(item.Servers) > 0 {
		servers = item.Servers
	}
	if operation.Servers != nil {
		servers = *operation.Servers
	}
	for _, server := range servers {
		if server.URL == url {
			return true
		}
	}
	return false
}
