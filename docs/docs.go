// Package docs is the documents for users, which the program shows as well.
package docs

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.md
var files embed.FS

// Topic is a document for users.
type Topic struct {
	// Name is that of its file, Title its first line; Text is Markdown.
	Name, Title, Text string
}

// forDevelopers are documents that say nothing to users.
var forDevelopers = []string{"plan", "measured"}

// Topics returns the documents, ordered by name.
func Topics() (all []Topic) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		panic(err) // they are in the program
	}
	for _, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		if err != nil {
			panic(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		name := strings.TrimSuffix(entry.Name(), ".md")
		if !slices.Contains(forDevelopers, name) {
			all = append(all, Topic{name, strings.TrimPrefix(first, "# "), string(text)})
		}
	}
	return all
}
