package openapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"

	"starling/api/door"
	starlingv1 "starling/api/v1"
)

var rewrite = flag.Bool("rewrite", false, "write openapi.json, and add what is new to ../v1/stable.txt")

// compiled is the description in the source, with its comments.
func compiled(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{".."}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(t.Context(), "v1/starling.proto")
	if err != nil {
		t.Fatal(err)
	}
	return files[0]
}

// TestDocument keeps openapi.json as v1/starling.proto says; -rewrite writes it.
func TestDocument(t *testing.T) {
	want, err := json.MarshalIndent(newDocument(compiled(t)).all(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *rewrite {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(document, want) {
		t.Error("openapi.json differs from v1/starling.proto: run go test ./api/openapi -rewrite")
	}
}

// TestDocumentIsWhole follows every reference of the document, and looks for every method and message in it.
func TestDocumentIsWhole(t *testing.T) {
	var all struct {
		OpenAPI    string
		Paths      map[string]map[string]struct{ OperationID, Description string }
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(document, &all); err != nil {
		t.Fatal(err)
	}
	file := starlingv1.File_v1_starling_proto
	for i := range file.Services().Get(0).Methods().Len() {
		method := file.Services().Get(0).Methods().Get(i)
		path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
		if all.Paths[path]["post"].Description == "" {
			t.Errorf("%s is not described", path)
		}
	}
	for i := range file.Messages().Len() {
		if name := string(file.Messages().Get(i).Name()); all.Components.Schemas[name] == nil {
			t.Errorf("message %s is not described", name)
		}
	}
	for part := range strings.SplitSeq(string(document), `"#/components/schemas/`) {
		name, _, _ := strings.Cut(part, `"`)
		if !strings.Contains(part[:len(name)], "{") && all.Components.Schemas[name] == nil {
			t.Errorf("schema %s is not there", name)
		}
	}
	for _, path := range []string{door.PathEvents, door.PathJournal, door.PathLogs, door.PathEndpoints + "{job}",
		door.PathHealth, door.PathReady, door.PathMetrics, door.PathOpenAPI} {
		if all.Paths[path]["get"].Description == "" {
			t.Errorf("GET %s is not described", path)
		}
	}
}

// object is a JSON object.
type object = map[string]any

// doc makes a document.
type doc struct {
	file           protoreflect.FileDescriptor
	paths, schemas object
}

func newDocument(file protoreflect.FileDescriptor) *doc {
	d := &doc{file: file, paths: object{}, schemas: object{"Failure": object{
		"type": "object", "description": "What is wrong: the code of Connect and a sentence; with details if there are any.",
		"properties": object{"code": object{"type": "string"}, "message": object{"type": "string"},
			"details": object{"type": "array", "items": object{"type": "object"}}},
	}}}
	for i := range file.Messages().Len() {
		message := file.Messages().Get(i)
		d.schemas[string(message.Name())] = d.message(message)
	}
	methods := file.Services().Get(0).Methods()
	for i := range methods.Len() {
		d.procedure(methods.Get(i))
	}
	d.plain()
	return d
}

func (d *doc) all() object {
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "Starling", "version": "v1",
			"description": "Any peer answers any request. Numbers of 64 bits are strings in JSON; a time that is absent is " +
				"not known. Who may ask for what: see the documentation on security."},
		"paths": d.paths, "components": object{"schemas": d.schemas},
	}
}

// comment returns what stands before a thing in the source.
func comment(file protoreflect.FileDescriptor, of protoreflect.Descriptor) string {
	location := file.SourceLocations().ByDescriptor(of)
	lines := strings.Split(strings.TrimSpace(location.LeadingComments), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, " ")
}

func (d *doc) message(m protoreflect.MessageDescriptor) object {
	properties := object{}
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		schema := schemaOf(field)
		if text := comment(d.file, field); text != "" {
			schema["description"] = text
		}
		properties[string(field.Name())] = schema
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if text := comment(d.file, m); text != "" {
		schema["description"] = text
	}
	return schema
}

func schemaOf(field protoreflect.FieldDescriptor) object {
	if field.IsList() {
		return object{"type": "array", "items": single(field)}
	}
	return single(field)
}

func single(field protoreflect.FieldDescriptor) object {
	switch field.Kind() {
	case protoreflect.MessageKind:
		if field.Message().FullName() == "google.protobuf.Timestamp" {
			return object{"type": "string", "format": "date-time"}
		}
		return reference(field.Message())
	case protoreflect.BoolKind:
		return object{"type": "boolean"}
	case protoreflect.BytesKind:
		return object{"type": "string", "format": "byte"}
	case protoreflect.Int32Kind, protoreflect.Uint32Kind:
		return object{"type": "integer", "format": field.Kind().String()}
	case protoreflect.Int64Kind, protoreflect.Uint64Kind:
		return object{"type": []string{"string", "integer"}, "format": field.Kind().String()}
	case protoreflect.DoubleKind:
		return object{"type": "number", "format": "double"}
	case protoreflect.StringKind:
		return object{"type": "string"}
	}
	panic("a field of kind " + field.Kind().String() + " has no schema yet")
}

func reference(m protoreflect.MessageDescriptor) object {
	return object{"$ref": "#/components/schemas/" + string(m.Name())}
}

// answers are those of a method: what it answers in which form, or a failure.
func answers(kind string, schema object) object {
	return object{
		"200": object{"description": "The answer.", "content": object{kind: object{"schema": schema}}},
		"default": object{"description": "A failure.",
			"content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Failure"}}}},
	}
}

func (d *doc) procedure(m protoreflect.MethodDescriptor) {
	text, kind := comment(d.file, m), "application/json"
	if m.IsStreamingServer() {
		kind = "application/connect+json"
		text += " It answers with a stream: each message, and the request, stands in an envelope of the Connect protocol."
	}
	d.paths[fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())] = object{"post": object{
		"operationId": string(m.Name()), "description": text,
		"requestBody": object{"required": true, "content": object{kind: object{"schema": reference(m.Input())}}},
		"responses":   answers(kind, reference(m.Output())),
	}}
}

// plain describes what is asked for without a body.
func (d *doc) plain() {
	methods := d.file.Services().Get(0).Methods()
	stream := func(path, id string, method protoreflect.Name, without ...string) {
		m := methods.ByName(method)
		operation := object{"operationId": id, "parameters": d.parameters(m.Input(), without),
			"description": comment(d.file, m) + " A line of JSON each, or server-sent events if those are accepted.",
			"responses":   answers("application/x-ndjson", reference(m.Output()))}
		for _, name := range without {
			operation["parameters"] = append(operation["parameters"].([]object), object{"name": name, "in": "path",
				"required": true, "schema": object{"type": "string"}})
		}
		d.paths[path] = object{"get": operation}
	}
	stream(door.PathEvents, "events", "Watch")
	stream(door.PathJournal, "journal", "TailJournal")
	stream(door.PathEndpoints+"{job}", "endpoints", "Watch", "job")
	text := func(path, id, description string, parameters ...object) {
		d.paths[path] = object{"get": object{"operationId": id, "description": description, "parameters": parameters,
			"responses": answers("text/plain", object{"type": "string"})}}
	}
	parameter := func(name, kind, description string) object {
		return object{"name": name, "in": "query", "description": description, "schema": object{"type": kind}}
	}
	text(door.PathLogs, "logs", "The output of an instance.",
		parameter("of", "string", "An instance such as web.server[2], or an attempt such as web.server[2]#4711."),
		parameter("stream", "string", "stdout, stderr or both."),
		parameter("tail", "integer", "So many bytes before the end."),
		parameter("follow", "boolean", "Goes on until the instance has ended."))
	text(door.PathHealth, "health", "200 if the peer serves as it should, otherwise 503 and why.")
	text(door.PathReady, "ready", "The same.")
	text(door.PathMetrics, "metrics", "Metrics in the format of Prometheus.")
	text(door.PathOpenAPI, "openapi", "This document.")
}

// parameters are the fields of a message as the parameters of a query.
func (d *doc) parameters(m protoreflect.MessageDescriptor, without []string) []object {
	all := []object{}
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		if len(without) > 0 && string(field.Name()) == without[0] {
			continue
		}
		schema, text := schemaOf(field), comment(d.file, field)
		if field.Kind() == protoreflect.MessageKind {
			schema, text = object{"type": "array", "items": object{"type": "string"}}, text+" As NAME=VALUE."
		}
		all = append(all, object{"name": string(field.Name()), "in": "query", "description": text, "schema": schema})
	}
	return all
}
