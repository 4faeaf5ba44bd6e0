package replica

import (
	"fmt"
	"os"
	"testing"
	"time"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/snapshot"
	"starling/command"
	"starling/terms"
	"starling/terms/rules"
)

// dayVariable makes BenchmarkYear fold whole days at its ends, instead of an hour of them.
const dayVariable = "STARLING_WHOLE_DAYS"

const perSecond, dayMillis = 10, 24 * 3600 * 1000

// year is a cluster that runs ten jobs a second. It keeps what the journal has since the entry of which a snapshot is
// due, and the most that it had.
type year struct {
	testing.TB
	*cluster.State
	seq     map[terms.PeerID]uint64
	now     terms.Time
	number  int
	start   []byte
	journal [][]byte
	bytes   int
	most    int
}

func yearOf(t testing.TB) *year {
	y := &year{TB: t, State: clusterOf(10), seq: map[terms.PeerID]uint64{}, number: 100_000_000}
	y.Rules = rules.Released
	return y
}

func (y *year) fold(p terms.PeerID, c ...command.Command) {
	y.seq[p]++
	e := &command.Entry{Writer: p, Seq: y.seq[p] + 1, Time: y.now, Commands: c}
	data := command.Encode(e)
	e.Bytes = uint32(len(data))
	Apply(y.State, y.Index+1, e, false)
	y.journal = append(y.journal, data)
	y.bytes += len(data)
	y.most = max(y.most, y.bytes)
	if n := &y.Snapshots; n.Due == y.Index {
		n.Due = 0 // as once it is confirmed
		y.start, y.journal, y.bytes = snapshot.Encode(y.Facts()), y.journal[:0], 0
	}
}

func (y *year) report(id terms.JobID, ended facts.Ending) {
	r := facts.SlotRef{Job: id}
	slot, _ := y.SlotAt(r)
	if slot.Phase != facts.Assigned && slot.Phase != facts.Running {
		y.Fatalf("job %d is %v", id, slot.Phase)
	}
	p := y.Node(slot.Node).Peer
	y.fold(p, &command.ReportTasks{Peer: p, Reports: []command.Report{{Slot: r, Order: slot.Order, Ended: ended}}})
}

// run runs so many jobs, each to its end.
func (y *year) run(jobs int) {
	for range jobs {
		y.now += 1000 / perSecond
		y.number++
		name := fmt.Sprintf("job-%09d", y.number)
		one := benchJob(name, 1, terms.Pack, 100)
		one.RequestID = fmt.Sprintf("request-%09d", y.number)
		y.fold("m00000~1", one)
		id := y.JobOf(terms.JobName(name)).ID
		y.report(id, facts.NotEnded)
		y.report(id, facts.ByItself)
	}
}

// size is how many bytes a snapshot of the value has now.
func (y *year) size() int { return len(snapshot.Encode(y.Facts())) }

// A cluster that runs ten jobs a second is as large after a year as after a day: of ten minutes in each month, what was
// before leaves nothing.
func TestAYearIsAsLargeAsADay(t *testing.T) {
	y, sizes := yearOf(t), [13]int{}
	for month := range sizes {
		y.now = 1_700_000_000_000 + terms.Time(month)*30*dayMillis
		y.run(6000)
		sizes[month] = y.size()
	}
	t.Logf("after each month %d bytes", sizes)
	if first, last := sizes[0], sizes[12]; last > first+first/50 {
		t.Errorf("the value has %d bytes after ten minutes, and %d after a year", first, last)
	}
	if _, err := snapshot.Decode(snapshot.Encode(y.Facts()), y.Rules); err != nil {
		t.Error(err)
	}
	if cluster.Rebuild(y.Facts()).Digest() != y.Digest() {
		t.Error("what is made of its facts differs")
	}
}

// BenchmarkYear tells how large value and journal are, and what a start costs, after the first day of a year and after
// the last. Of the days between it runs ten minutes each.
func BenchmarkYear(b *testing.B) {
	jobs := 3600 * perSecond
	if os.Getenv(dayVariable) != "" {
		jobs *= 24
	}
	y := yearOf(b)
	for b.Loop() {
		for day := range 365 {
			y.now = 1_700_000_000_000 + terms.Time(day)*dayMillis
			switch day {
			case 0, 364:
				y.run(jobs)
				y.tell(b, day+1)
			default:
				y.run(600 * perSecond)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}

// tell reports the sizes, and starts from the snapshot and what the journal has behind it.
func (y *year) tell(b *testing.B, day int) {
	unit := func(what string) string { return fmt.Sprintf("%s-day-%d", what, day) }
	began := time.Now()
	f, err := snapshot.Decode(y.start, rules.Released)
	if err != nil {
		b.Fatal(err)
	}
	s := cluster.Rebuild(f)
	for _, data := range y.journal {
		e, err := command.Decode(data, s.Rules)
		if err != nil {
			b.Fatal(err)
		}
		Apply(s, s.Index+1, e, false)
	}
	took := time.Since(began)
	if s.Digest() != y.Digest() {
		b.Fatal("who started has another value")
	}
	b.ReportMetric(float64(y.size())/1000, unit("kB-value"))
	b.ReportMetric(float64(y.most)/1000, unit("kB-journal-most"))
	b.ReportMetric(float64(len(y.journal)), unit("entries"))
	b.ReportMetric(took.Seconds(), unit("s-start"))
	y.most = 0
}
