package files

import (
	"starling/cmd/starling/console"
	"starling/jobspec"
	"starling/terms/pool"
)

// Pools reads and checks a pools file. What is wrong with it is told, a line each, and that nothing was done.
func Pools(c *console.Console, file, nothing string) (pool.Tree, error) {
	data, file, err := c.ReadFile(file, "pools file")
	if err != nil {
		return nil, err
	}
	tree, err := jobspec.ParsePools(file, data)
	return tree, told(c, err, file, nothing)
}
