package console

// Dash stands in tables for what is absent.
func Dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
