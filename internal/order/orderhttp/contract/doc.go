// Package contract checks answers of the shop's HTTP API against openapi.yaml. It
// is for tests.
//
// An answer is off the contract if its operation does not list its status, if a
// header is missing, wrong or not listed, if its media type is another one, or if
// its body does not match the schema: every object there is closed. What is
// answered at a path or to a method that the document does not have must be the
// response NoSuchPath or MethodNotAllowed; at the operator's listener it may be
// OperatorUnauthorized. Each listener is checked for itself: Buyers, Operator.
//
// A request that was answered with a success must be one that the document
// allows: it may not promise less than the shop does.
//
// Transport checks what goes over a real connection.
package contract
