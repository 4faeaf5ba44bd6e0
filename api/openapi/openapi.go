// Package openapi serves the description of the API, in the form of OpenAPI 3.1.
package openapi

import (
	_ "embed"
	"net/http"
)

// document is what its test makes of v1/starling.proto.
//
//go:embed openapi.json
var document []byte

// Serve answers with the description.
func Serve(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document) // it fails only if who asked has gone
}
