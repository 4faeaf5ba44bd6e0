package browser

import (
	"flag"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

var rewrite = flag.Bool("rewrite", false, "make the picture of the README again")

const (
	picture = "../../docs/page.png"
	// pictureBytesMax bounds what everybody who clones this has to load.
	pictureBytesMax = 200 << 10
)

// TestDemo looks at what starling dev --demo shows, until a machine dies and is back. With -rewrite it makes the
// picture of the README.
func TestDemo(t *testing.T) {
	b := open(t)
	found := starling(t, `page: (\S+)`, "", "dev", "--demo", "--address", "127.0.0.1:0")
	b.do(chromedp.Navigate(found[1]))
	b.see(`20 machines`)
	b.see(`shop/front/web`)
	b.see(`research/vision/train`)
	b.shoot("demo")
	b.see(`19 machines`) // one has died
	before := b.index()
	if *rewrite {
		b.do(chromedp.EmulateViewport(1200, 800))
		b.picture(picture)
		b.do(chromedp.EmulateViewport(1400, 900))
	}
	b.visit("/job/shop%2Ffront%2Fweb")
	b.see(`6 running`)
	b.shoot("demo-service")
	b.visit("/why")
	b.see(`research/language/finetune`)
	b.shoot("demo-why")
	b.visit("/pools?of=research")
	b.see(`Pool research`)
	b.shoot("demo-pools")
	b.visit("/")
	b.see(`20 machines`) // it is back
	b.slide(before)
	b.see(`19 machines`)
	info, err := os.Stat(picture)
	if err != nil || info.Size() > pictureBytesMax {
		t.Errorf("%s is not there, or has more than %d bytes: go test ./e2e/browser -run TestDemo -rewrite makes it: %v",
			picture, pictureBytesMax, err)
	}
}
