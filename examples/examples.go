// Package examples holds job files that run as they are, on any machine with a shell and what they say themselves, and
// explain themselves, and a pools file for them to run in.
package examples

import (
	"embed"
	"fmt"
)

//go:embed *.yaml demo/*.yaml
var files embed.FS

// File is an example.
type File struct {
	// Name is what the file is called, such as "hello.yaml" or "demo/shop.yaml".
	Name string
	Data []byte
}

// Files returns all job files, in the order in which a newcomer reads them.
func Files() []File {
	names := []string{"hello.yaml", "largest.yaml", "array.yaml", "gang.yaml", "service.yaml", "update.yaml",
		"constraints.yaml", "neighbours.yaml", "elastic.yaml", "mpi.yaml", "restart.yaml", "policies.yaml", "words.yaml",
		"container.yaml"}
	all := make([]File, len(names))
	for i, name := range names {
		all[i] = file(name)
	}
	return all
}

// Pools returns the pools file.
func Pools() File { return file("pools.yaml") }

// Demo returns what starling dev --demo shows: a pools file, and the job files of the teams that have those pools.
func Demo() (pools File, jobs []File) {
	return file("demo/pools.yaml"), []File{file("demo/shop.yaml"), file("demo/research.yaml"), file("demo/data.yaml")}
}

func file(name string) File {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("examples: %s is not embedded: %v", name, err)) // a test reads them all
	}
	return File{Name: name, Data: data}
}
