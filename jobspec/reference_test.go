package jobspec

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

// TestReference keeps the documents as the tables say; -rewrite writes them.
func TestReference(t *testing.T) {
	for name, want := range references() {
		file := "../docs/" + name + ".md"
		if flag.Lookup("rewrite").Value.String() == "true" {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from the tables: run go test ./jobspec -run TestReference -rewrite", file)
		}
	}
}
