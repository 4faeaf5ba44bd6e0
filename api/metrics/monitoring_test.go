package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const monitoring = "../../docs/monitoring/"

// promtool runs the program that comes with Prometheus.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is missing: apt-get install prometheus")
	}
	if said, err := exec.Command("promtool", arguments...).CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", arguments, err, said)
	}
}

// TestAlertsFire plays each alert of alerts.yaml as it fires, and a cluster in which none does.
func TestAlertsFire(t *testing.T) {
	const fire, none = "testdata/alerts.yaml", "testdata/quiet.yaml"
	alerts, firing, quiet := read(t, monitoring+"alerts.yaml"), read(t, fire), read(t, none)
	for _, found := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(alerts, -1) {
		if !strings.Contains(firing, "alertname: "+found[1]+"\n") || !strings.Contains(quiet, "alertname: "+found[1]+",") {
			t.Errorf("%s must fire in %s, and be named in %s, where none fires", found[1], fire, none)
		}
	}
	promtool(t, "check", "rules", monitoring+"alerts.yaml")
	promtool(t, "test", "rules", fire, none)
}

// TestAlertsNameWhatThereIs: no alert waits for a metric, or for a value of a label, that no peer tells.
func TestAlertsNameWhatThereIs(t *testing.T) {
	state, meter := folded(t)
	scraped := text(&Scrape{State: state, Meter: meter, Version: "v1"})
	alerts := read(t, monitoring+"alerts.yaml")
	for _, found := range regexp.MustCompile(`(starling_\w+)(?:\{(.*?)\})?`).FindAllStringSubmatch(alerts, -1) {
		name := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(found[1], "")
		at := slices.IndexFunc(table(), func(m metric) bool { return m.name == name })
		if at < 0 {
			t.Errorf("alerts.yaml: there is no metric %s", found[1])
			continue
		}
		for _, label := range regexp.MustCompile(`(\w+)(!?=~?)(".*?")`).FindAllStringSubmatch(found[2], -1) {
			if !slices.Contains(table()[at].labels, label[1]) {
				t.Errorf("alerts.yaml: %s has no label %s", name, label[1])
			}
			told := regexp.MustCompile(name + `\{[^}]*` + label[1] + "=" + regexp.QuoteMeta(label[3]))
			if label[2] == "=" && !told.MatchString(scraped) {
				t.Errorf("alerts.yaml: no %s has %s %s", name, label[1], label[3])
			}
		}
	}
}

// TestDashboard keeps dashboard.json, with a panel for each metric, and wants Prometheus to understand what it asks.
func TestDashboard(t *testing.T) {
	text, err := json.MarshalIndent(dashboard(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	written(t, monitoring+"dashboard.json", string(text)+"\n")
	rules := "groups:\n- name: dashboard\n  rules:\n"
	for i, m := range table() {
		for j, asked := range m.queries() {
			expression := strings.ReplaceAll(asked.Expr, "$__rate_interval", "5m")
			rules += fmt.Sprintf("  - {record: 'panel:%d:%d', expr: '%s'}\n", i, j, expression)
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// object is one of JSON.
type object map[string]any

// query is what a panel asks Prometheus.
type query struct {
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
	RefID  string `json:"refId"`
}

// isFolded tells whether all peers count the same, so that nothing may be added up over them.
func (m *metric) isFolded() bool { return strings.HasPrefix(m.name, "starling_peer_folded_") }

// queries are those of the metric's panel: of what all peers tell alike once, of anything else for each peer.
func (m *metric) queries() []query {
	by := slices.Clone(m.labels)
	if m.ofPeer() && !m.isFolded() {
		by = append([]string{"instance"}, by...)
	}
	legend := "{{" + strings.Join(by, "}} {{") + "}}"
	if len(by) == 0 {
		legend = m.name
	}
	list := strings.Join(by, ", ")
	switch {
	case m.kind() == "histogram":
		quantile := func(of, refID string) query {
			return query{fmt.Sprintf("histogram_quantile(%s, sum by (%s, le) (rate(%s_bucket[$__rate_interval])))", of, list, m.name),
				legend + " " + of, refID}
		}
		return []query{quantile("0.5", "A"), quantile("0.99", "B")}
	case m.kind() == "counter":
		return []query{{fmt.Sprintf("max by (%s) (rate(%s[$__rate_interval]))", list, m.name), legend, "A"}}
	}
	return []query{{fmt.Sprintf("max by (%s) (%s)", list, m.name), legend, "A"}}
}

// unit is Grafana's name of what the metric is in.
func (m *metric) unit() string {
	switch {
	case strings.HasSuffix(m.name, "_seconds"):
		return "s"
	case strings.HasSuffix(m.name, "_bytes"):
		return "bytes"
	case m.kind() == "counter":
		return "cps"
	}
	return "short"
}

// dashboard is what Grafana imports: rows of panels, three beside each other.
func dashboard() object {
	const wide, high, across = 8, 7, 3
	source := object{"type": "prometheus", "uid": "${datasource}"}
	panels, top := []object{}, 0
	for _, row := range []struct {
		title string
		has   func(*metric) bool
	}{
		{"The cluster, as all peers tell alike", func(m *metric) bool { return !m.ofPeer() }},
		{"What happens in the cluster, as all peers count alike", (*metric).isFolded},
		{"Each peer", func(m *metric) bool { return m.ofPeer() && !m.isFolded() }},
	} {
		panels = append(panels, object{"type": "row", "title": row.title, "collapsed": false, "id": len(panels) + 1,
			"gridPos": object{"x": 0, "y": top, "w": wide * across, "h": 1}, "panels": []object{}})
		top++
		count := 0
		for _, m := range table() {
			if !row.has(&m) {
				continue
			}
			panels = append(panels, object{"type": "timeseries", "title": m.name, "description": m.help, "id": len(panels) + 1,
				"datasource": source, "targets": m.queries(),
				"fieldConfig": object{"defaults": object{"unit": m.unit(), "min": 0}, "overrides": []object{}},
				"gridPos":     object{"x": count % across * wide, "y": top + count/across*high, "w": wide, "h": high}})
			count++
		}
		top += (count + across - 1) / across * high
	}
	return object{"title": "Starling", "uid": "starling", "tags": []string{"starling"}, "schemaVersion": 38,
		"editable": true, "refresh": "30s", "time": object{"from": "now-3h", "to": "now"}, "panels": panels,
		"templating": object{"list": []object{{"name": "datasource", "type": "datasource", "query": "prometheus"}}}}
}
