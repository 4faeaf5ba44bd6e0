package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestManyPools shows more pools than one answer has.
func TestManyPools(t *testing.T) {
	b := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--address", "127.0.0.1:0")
	file := strings.Builder{}
	file.WriteString("pools:\n")
	for i := range 1100 {
		fmt.Fprintf(&file, "  - {path: team%04d}\n", i)
	}
	ask(t, found[1], file.String(), "pool", "apply", "-")
	b.do(chromedp.Navigate(found[2]))
	b.visit("/pools")
	b.see(`team0000`)
	b.see(`team1099`)
}
