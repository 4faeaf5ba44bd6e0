package jobspec

import (
	"bytes"
	"encoding/json"
)

// pair is a key and its value in a JSON object.
type pair struct {
	key   string
	value any
}

// object is a JSON object whose keys stay in order, so that a schema reads like the file that it describes.
type object []pair

// MarshalJSON writes the pairs in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(p.key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := encoder.Encode(p.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Schema returns the JSON Schema (draft-07) of one document of a job file.
func Schema() []byte {
	return schemaOf("Starling job", "A job of a Starling cluster: one document of a job file.",
		append(jobForm().schema, pair{"definitions", object{{"constraint", constraintTable().schema}}}))
}

func schemaOf(title, description string, what object) []byte {
	schema := object{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title},
		{"description", description}}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(append(schema, what...)); err != nil {
		panic("jobspec: the schema is no JSON: " + err.Error()) // it holds only texts, numbers and lists of them
	}
	return b.Bytes()
}

// mappingSchema is the schema of a mapping with these keys and no others.
func mappingSchema(rows []row) object {
	properties, required := object{}, []string{}
	for _, r := range rows {
		described := object{{"description", r.doc + r.fallback(" Default: ", ".")}}
		properties = append(properties, pair{r.name, append(described, r.schema...)})
		if r.required {
			required = append(required, r.name)
		}
	}
	schema := closed(properties)
	if len(required) > 0 {
		schema = append(schema, pair{"required", required})
	}
	return schema
}

// closed is the schema of a mapping with no others than these keys.
func closed(properties object) object {
	return object{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
}

// fallback returns what stands for the key when it is absent, between two texts; "" if nothing does.
func (r row) fallback(before, after string) string {
	switch {
	case r.batch == "" || r.batch == allDefaults:
		return ""
	case r.batch == r.service && r.batch == r.daemon:
		return before + r.batch + after
	case r.service == r.daemon:
		return before + r.batch + " for batch, else " + r.service + after
	}
	return before + r.batch + " for batch, " + r.service + " for stateless and stateful, " + r.daemon + " for daemon" +
		after
}
