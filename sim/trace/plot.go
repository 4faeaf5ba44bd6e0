package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// The measures of a plot in pixels: the drawing and the free space around it.
const (
	plotWidth, plotHeight                       = 840, 460
	plotLeft, plotTop, plotAround, plotForWords = 64, 48, 24, 56
	plotRow                                     = 18
)

// plotColours tell policies apart, also for those who see few colours (Okabe and Ito); with more they begin again.
var plotColours = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"}

// plot draws curves into an SVG.
type plot struct {
	text strings.Builder
	// right and top are the largest percentages on the axes.
	right, top float64
}

// Plot writes an SVG of allocated and fragmented GPUs over the GPUs that the tasks which have arrived ask for, with two
// lines for each result.
func Plot(to io.Writer, results []*Result) error {
	p := &plot{right: 10, top: 100}
	for _, r := range results {
		if len(r.Curve) == 0 {
			return errors.New("there are no GPUs to draw")
		}
		p.right = max(p.right, float64(len(r.Curve)-1))
	}
	height := plotTop + plotHeight + plotForWords + plotRow*len(results)
	width := plotLeft + plotWidth + plotAround
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`,
		width, height+plotAround, width, height+plotAround)
	p.add(`<title>GPUs allocated and fragmented over the demand that has arrived</title>`)
	p.add(`<rect width="100%%" height="100%%" fill="white"/>`)
	p.axes()
	p.line([]Point{{}, {Arrived: min(p.right, 100), Allocated: min(p.right, 100)}},
		`stroke="#999999" stroke-dasharray="2 4"`, allocated)
	for i, r := range results {
		colour := plotColours[i%len(plotColours)]
		p.line(r.Curve, fmt.Sprintf(`stroke="%s" stroke-width="2"`, colour), allocated)
		p.line(r.Curve, fmt.Sprintf(`stroke="%s" stroke-width="2" stroke-dasharray="7 4"`, colour), fragmented)
		p.legend(i, colour, r)
	}
	p.add(`</svg>`)
	_, err := io.WriteString(to, p.text.String())
	return err
}

func allocated(p Point) float64  { return p.Allocated }
func fragmented(p Point) float64 { return p.Fragmented }

func (p *plot) add(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// x and y return where percentages are drawn.
func (p *plot) x(value float64) float64 { return plotLeft + value/p.right*plotWidth }
func (p *plot) y(value float64) float64 { return plotTop + plotHeight - value/p.top*plotHeight }

// axes draws a grid with its numbers and the words beside it.
func (p *plot) axes() {
	for value := 0.0; value <= p.top; value += 10 {
		y := p.y(value)
		p.add(`<path d="M%d %.1fH%d" stroke="#dddddd"/>`, plotLeft, y, plotLeft+plotWidth)
		p.add(`<text x="%d" y="%.1f" text-anchor="end">%.0f</text>`, plotLeft-8, y+4, value)
	}
	step := 10 * math.Ceil(p.right/150)
	for value := 0.0; value <= p.right; value += step {
		x := p.x(value)
		p.add(`<path d="M%.1f %dV%d" stroke="#dddddd"/>`, x, plotTop, plotTop+plotHeight)
		p.add(`<text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`, x, plotTop+plotHeight+18, value)
	}
	p.add(`<text x="%d" y="%d">percent of all GPUs: allocated (solid), left but of no use to an average task (dashed)</text>`, plotLeft, plotTop-16)
	p.add(`<text x="%d" y="%d" text-anchor="middle">GPUs asked for by the tasks that have arrived, percent of all</text>`,
		plotLeft+plotWidth/2, plotTop+plotHeight+40)
}

// line draws one value of the points.
func (p *plot) line(points []Point, style string, value func(Point) float64) {
	var at []string
	for _, one := range points {
		at = append(at, fmt.Sprintf("%.1f,%.1f", p.x(one.Arrived), p.y(value(one))))
	}
	p.add(`<polyline fill="none" %s points="%s"/>`, style, strings.Join(at, " "))
}

// legend says in a row below what a colour means and where its lines end.
func (p *plot) legend(row int, colour string, r *Result) {
	y := plotTop + plotHeight + plotForWords + plotRow*(row+1)
	last := r.Curve[len(r.Curve)-1]
	p.add(`<path d="M%d %dh36" stroke="%s" stroke-width="2"/>`, plotLeft, y-4, colour)
	p.add(`<text x="%d" y="%d">%s: %.2f %% allocated, %.2f %% fragmented at %.0f %%</text>`, plotLeft+44, y, r.Policy,
		last.Allocated,
		last.Fragmented, last.Arrived)
}
