package plugin

import (
	"strconv"
	"strings"
)

// json returns the list in its machine-readable form. It is written here, and not by the standard library, so that its
// bytes are the same whatever release the program was built with.
func (r *Roster) json() []byte {
	text := quoted([]byte("{\n\"job\": "), string(r.Job))
	text = strconv.AppendUint(append(text, ",\n\"version\": "...), uint64(r.Version), 10)
	text = append(text, ",\n\"tasks\": ["...)
	for i := range r.Tasks {
		t := &r.Tasks[i]
		text = append(quoted(append(text, separator(i, "\n{\"name\": ")...), string(t.Name)), ", \"members\": ["...)
		for k := range t.Members {
			text = t.Members[k].json(append(text, separator(k, "\n  ")...))
		}
		text = append(text, "]}"...)
	}
	return append(text, "]\n}\n"...)
}

func (m *Member) json(text []byte) []byte {
	text = strconv.AppendUint(append(text, `{"index": `...), uint64(m.Index), 10)
	text = quoted(append(text, `, "name": `...), m.Name)
	text = append(quoted(append(text, `, "address": `...), m.Address), `, "order": `...)
	text = append(strconv.AppendUint(text, uint64(m.Order), 10), `, "ports": {`...)
	for i, p := range m.Ports {
		text = append(quoted(append(text, separator(i, "")...), p.Name), ": "...)
		text = strconv.AppendUint(text, uint64(p.Number), 10)
	}
	return append(text, "}}"...)
}

// separator returns what comes before an element of a list.
func separator(at int, before string) string {
	switch {
	case at == 0:
		return before
	case before == "":
		return ", "
	}
	return "," + before
}

// quoted appends a text as JSON. Bytes that are no text become U+FFFD.
func quoted(to []byte, text string) []byte {
	to = append(to, '"')
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			to = append(to, '\\', byte(r))
		case r < ' ':
			to = append(to, `\u00`...)
			to = append(to, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		default:
			to = append(to, string(r)...)
		}
	}
	return append(to, '"')
}
