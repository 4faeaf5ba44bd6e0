// Package dump writes out what stands in the journal, for those who repair the program.
package dump

import (
	"encoding/json"
	"fmt"

	"starling/command"
	"starling/terms/rules"
)

// Entry writes out an entry under the rules in force, as far as that can be done: decoding may be what has failed.
func Entry(payload []byte, in rules.Number) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("it cannot be decoded: %v\n", r)
		}
	}()
	e, err := command.Decode(payload, in)
	if err != nil {
		return fmt.Sprintf("it cannot be decoded: %v\n", err)
	}
	text = fmt.Sprintf("of %s, number %d, at %d, rules %d, caused by entry %d\n", e.Writer, e.Seq, e.Time, e.Rules,
		e.Cause)
	for _, one := range e.Commands {
		fields, _ := json.MarshalIndent(one, "", "\t") // they are plain values
		text += fmt.Sprintf("%s %s\n", one.Kind(), fields)
	}
	return text
}
