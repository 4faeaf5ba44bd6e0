package console

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable quotes a text of one line with which whoever wrote it could play with the terminal.
func Printable(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// PrintableLines writes what of some lines is not printable as Go does, such as \x1b, but for tabs and their ends.
func PrintableLines(text string) string {
	var b strings.Builder
	for rest := text; len(rest) > 0; {
		r, bytes := utf8.DecodeRuneInString(rest)
		switch one := rest[:bytes]; {
		case r == '\n' || r == '\t' || unicode.IsPrint(r) && utf8.ValidString(one):
			b.WriteString(one)
		default:
			quoted := strconv.Quote(one)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		rest = rest[bytes:]
	}
	return b.String()
}
