package report

import (
	"fmt"
	"strings"

	"starling/terms"
)

// namedMax bounds the members that a refusal names.
const namedMax = 5

// Names is the first names, and how many there are beyond them.
func Names(all []terms.PeerID) string {
	var names []string
	for _, p := range all[:min(len(all), namedMax)] {
		names = append(names, string(p))
	}
	text := strings.Join(names, ", ")
	if more := len(all) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
