package remote

import (
	"bytes"
	"strings"
	"testing"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
)

func TestAnswersAsText(t *testing.T) {
	answer := &starlingv1.Job{Name: "12", Type: "batch", Id: 3, SubmittedIndex: 7, Counts: &starlingv1.Counts{Running: 1}}
	var out bytes.Buffer
	r := &Remote{Console: &console.Console{Out: &out}, format: formatJSON}
	if err := r.ShowNext(answer, nil); err != nil {
		t.Fatal(err)
	}
	if want := `{"name":"12","id":3,"type":"batch","status":"","final":false,"version":0,"counts":{"desired":0,`; !strings.HasPrefix(out.String(), want) {
		t.Errorf("got %s, want %s...", out.String(), want)
	}
	out.Reset()
	r.format = formatYAML
	r.documents = 0
	for range 2 {
		if err := r.Show(answer, nil); err != nil {
			t.Fatal(err)
		}
	}
	first, second, found := strings.Cut(out.String(), "---\n")
	if !found || first != second || !strings.HasPrefix(first, "name: '12'\nid: 3\ntype: batch\n") {
		t.Errorf("got\n%s", out.String())
	}
}

// TestYAMLOfOperator quotes what means something else to readers of YAML 1.1.
func TestYAMLOfOperator(t *testing.T) {
	got, err := yamlOf([]byte(`{"operator":"=","value":"yes","plain":"word"}`))
	if want := "operator: \"=\"\nvalue: \"yes\"\nplain: word\n"; err != nil || string(got) != want {
		t.Errorf("got %q, want %q (%v)", got, want, err)
	}
}
