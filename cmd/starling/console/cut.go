package console

import (
	"strings"
	"unicode/utf8"
)

const colourEnd = "\x1b[0m"

// Cut returns a text of one line with at most so many characters, the last of which says if there were more. Colours
// count for nothing, and end with the text.
func Cut(text string, charactersMax int) string {
	if width(text) <= charactersMax {
		return text
	}
	cut, left, colour := strings.Builder{}, charactersMax-1, false
	for rest := text; left > 0; {
		if n := colourBytes(rest); n > 0 {
			colour = rest[:n] != colourEnd
			cut.WriteString(rest[:n])
			rest = rest[n:]
			continue
		}
		_, n := utf8.DecodeRuneInString(rest)
		cut.WriteString(rest[:n])
		rest = rest[n:]
		left--
	}
	cut.WriteString("…")
	if colour {
		cut.WriteString(colourEnd)
	}
	return cut.String()
}

// width returns how many characters of a line are seen.
func width(text string) int {
	seen := 0
	for len(text) > 0 {
		if n := colourBytes(text); n > 0 {
			text = text[n:]
			continue
		}
		_, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		seen++
	}
	return seen
}

// colourBytes returns how many bytes a colour has that the text begins with, 0 for none.
func colourBytes(text string) int {
	if !strings.HasPrefix(text, "\x1b[") {
		return 0
	}
	return strings.IndexByte(text, 'm') + 1
}
