// Package examples holds job files that run as they are, on any machine with a shell, and explain themselves.
package examples

import (
	"embed"
	"fmt"
)

//go:embed *.yaml
var files embed.FS

// File is a job file.
type File struct {
	// Name is what the file is called, such as "hello.yaml".
	Name string
	Data []byte
}

// Files returns all files, in the order in which a newcomer reads them.
func Files() []File {
	names := []string{"hello.yaml", "largest.yaml", "array.yaml", "service.yaml", "update.yaml", "constraints.yaml", "neighbours.yaml", "restart.yaml"}
	all := make([]File, len(names))
	for i, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			panic(fmt.Sprintf("examples: %s is not embedded: %v", name, err)) // a test reads them all
		}
		all[i] = File{Name: name, Data: data}
	}
	return all
}
