package jobspec

import (
	"go.yaml.in/yaml/v4"

	"starling/terms"
)

// Format writes a specification as a document of a job file, from which Parse reads the same specification. The
// specification must have no Problems.
func Format(spec *terms.Job) []byte {
	root := jobForm().write(spec)
	compact(root)
	data, err := yaml.Dump(root, yaml.WithLineWidth(-1))
	if err != nil {
		panic("jobspec: a job cannot be written: " + err.Error()) // it is made of texts and numbers
	}
	return data
}

// compact puts values that hold only scalars into one line, as people write them, unless they are long.
func compact(n *yaml.Node) {
	const bytesMax = 80
	bytes, flat := 0, true
	for _, child := range n.Content {
		compact(child)
		flat = flat && child.Kind == yaml.ScalarNode
		bytes += len(child.Value) + 2
	}
	if n.Kind != yaml.ScalarNode && flat && bytes < bytesMax {
		n.Style = yaml.FlowStyle
	}
}
