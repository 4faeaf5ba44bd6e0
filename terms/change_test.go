package terms

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"starling/terms/codec"
	"starling/terms/constraint"
)

// mutation changes one value somewhere below a field.
type mutation struct {
	path string
	do   func()
}

// fill gives every value below v something that is not its zero, and every list one element.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct, reflect.Array:
		for i := range parts(v) {
			fill(part(v, i), depth)
		}
	case reflect.Slice:
		if depth < 4 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth+1)
		}
	case reflect.Pointer:
		if depth < 4 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth+1)
		}
	default:
		change(v)
	}
}

// mutations lists a change of each value below v.
func mutations(path string, v reflect.Value) []mutation {
	var all []mutation
	switch v.Kind() {
	case reflect.Struct, reflect.Array:
		for i := range parts(v) {
			name := fmt.Sprint("[", i, "]")
			if v.Kind() == reflect.Struct {
				name = "." + v.Type().Field(i).Name
			}
			all = append(all, mutations(path+name, part(v, i))...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, mutations(fmt.Sprint(path, "[", i, "]"), v.Index(i))...)
		}
		all = append(all, mutation{path + "[+]", func() { v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem()))) }})
	case reflect.Pointer:
		if !v.IsNil() {
			all = append(all, mutations(path, v.Elem())...)
		}
		all = append(all, mutation{path + "=nil", func() { v.SetZero() }})
	default:
		all = append(all, mutation{path, func() { change(v) }})
	}
	return all
}

func parts(v reflect.Value) int {
	if v.Kind() == reflect.Struct {
		return v.NumField()
	}
	return v.Len()
}

func part(v reflect.Value, i int) reflect.Value {
	if v.Kind() == reflect.Struct {
		return v.Field(i)
	}
	return v.Index(i)
}

// change gives a plain value another.
func change(v reflect.Value) {
	switch {
	case v.CanUint():
		v.SetUint(v.Uint() + 1)
	case v.CanInt():
		v.SetInt(v.Int() + 1)
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	default:
		panic("terms: no rule for a field of kind " + v.Kind().String())
	}
}

// Mutants is the number of values in a full job.
func Mutants() int { return len(mutations("", reflect.ValueOf(full()).Elem())) }

// Mutant returns a full job, one that differs from it in one value, and the path to that value.
func Mutant(n int) (old, now *Job, path string) {
	old, now = full(), full()
	m := mutations("", reflect.ValueOf(now).Elem())[n]
	m.do()
	return old, now, m.path
}

// TestFieldsAreComplete changes every value of a job, one at a time: exactly one row of the table must see it, another
// row for each field, and the jobs must not be equal.
func TestFieldsAreComplete(t *testing.T) {
	jobRows, taskRows := map[string]string{}, map[string]string{}
	for n := range Mutants() {
		old, now, path := Mutant(n)
		checkRow(t, jobRows, path, seeing(jobFields[:], old, now))
		if len(now.Tasks) == 1 && !reflect.DeepEqual(old.Tasks[0], now.Tasks[0]) {
			checkRow(t, taskRows, path[len(".Tasks[0]"):], seeing(taskFields[:], &old.Tasks[0], &now.Tasks[0]))
		}
		if old.Equal(now) || !now.Equal(now) {
			t.Errorf("%s: Equal() does not see the change", path)
		}
	}
	for _, f := range jobFields {
		if jobRows[f.key] == "" {
			t.Errorf("the row %s is of no field of Job", f.key)
		}
	}
	for _, f := range taskFields {
		if taskRows[f.key] == "" {
			t.Errorf("the row %s is of no field of Task", f.key)
		}
	}
}

func full() *Job {
	spec := &Job{}
	fill(reflect.ValueOf(spec).Elem(), 0)
	return spec
}

// seeing returns the keys of the rows for which two values differ.
func seeing[T any](fields []field[T], a, b *T) []string {
	var all []string
	for _, f := range fields {
		if !codec.Equal(a, b, f.code) {
			all = append(all, f.key)
		}
	}
	return all
}

// checkRow wants one row for a path, the same for all below one field and no other field.
func checkRow(t *testing.T, rows map[string]string, path string, seen []string) {
	field := path
	for i := 1; i < len(path); i++ {
		if path[i] == '.' || path[i] == '[' {
			field = path[:i]
			break
		}
	}
	switch {
	case len(seen) == 0:
		t.Errorf("field %s is missing in the tables of terms/field.go, from which equality and encoding come", path)
	case len(seen) > 1:
		t.Errorf("%s: %d rows see the change (%q), want 1", path, len(seen), seen)
	case rows[seen[0]] == "":
		rows[seen[0]] = field
	case rows[seen[0]] != field:
		t.Errorf("%s: its row %s is that of %s", path, seen[0], rows[seen[0]])
	}
}

func TestChangeTo(t *testing.T) {
	cases := []struct {
		change func(*Task)
		want   Change
	}{
		{func(*Task) {}, NoChange},
		{func(t *Task) { t.Instances++ }, NoChange},
		{func(t *Task) { t.StopGraceMillis++ }, Replace}, // because its stop_after is set
		{func(t *Task) { t.StopDelayMillis++ }, InPlace}, // its supervisor knows nothing of it
		{func(t *Task) { t.Disconnect.StopAfterMillis++ }, Replace},
		{func(t *Task) { t.Disconnect.LostAfterMillis++ }, InPlace},
		{func(t *Task) { t.Restart.AttemptsMax++; t.Reschedule.Growth = Fibonacci }, InPlace},
		{func(t *Task) { t.Restart.AttemptsMax++; t.Env = nil }, Replace},
		{func(t *Task) { t.Checks[0].IntervalMillis++ }, Replace},
		{func(t *Task) { t.Placement, t.SpreadOver = Defragment, "" }, InPlace},
		{func(t *Task) { t.Constraints[0].Soft = !t.Constraints[0].Soft }, ByNode}, // it begins or ends to bind
		{func(t *Task) { t.Constraints = nil }, InPlace},                           // it was a preference
		{func(t *Task) {
			t.Constraints = append(slices.Clone(t.Constraints),
				constraint.Constraint{Attribute: "x", Operator: constraint.Exists, Soft: true})
		}, InPlace},
		{func(t *Task) { t.PerNodeMax++ }, InPlace},
		{func(t *Task) { t.PerNodeMax = 0 }, InPlace},
		{func(t *Task) { t.Constraints[0].Soft, t.Labels = false, nil }, Replace},
	}
	for i, c := range cases {
		old, now := &full().Tasks[0], &full().Tasks[0]
		c.change(now)
		if got := old.ChangeTo(now); got != c.want {
			t.Errorf("case %d: got %s, want %s", i, got, c.want)
		}
	}
	if task := (&full().Tasks[0]); task.ChangeTo(nil) != Replace || (*Task)(nil).ChangeTo(task) != Replace {
		t.Error("a missing task is like another")
	}
	for _, c := range []struct {
		old, now uint32
		want     Change
	}{{0, 1, ByNode}, {1, 2, InPlace}, {2, 1, ByNode}, {2, 0, InPlace}} {
		if got := (&Task{PerNodeMax: c.old}).ChangeTo(&Task{PerNodeMax: c.now}); got != c.want {
			t.Errorf("per_machine_max from %d to %d: got %s, want %s", c.old, c.now, got, c.want)
		}
	}
	old, now := &full().Tasks[0], &full().Tasks[0]
	now.Instances++
	now.StopGraceMillis++
	now.Restart.AttemptsMax++
	want := []Difference{{"instances", NoChange}, {"restart", InPlace}, {"stop_grace", Replace}}
	if got := old.Differences(now); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestEveryFieldHasItsChange says of each field what another value means for an instance that runs: that is what may
// change on the fly.
func TestEveryFieldHasItsChange(t *testing.T) {
	want := map[string]Change{"stop_grace": Replace, "disconnect": InPlace, "plugins": Replace, "disk_limit": Replace,
		"stop_signal": Replace, "volumes_limit": Replace}
	for key, change := range map[string]Change{
		"name command container env work_dir user pids_limit id_tokens secrets checks volumes host_paths resources devices ports labels": Replace,
		"constraints per_machine_max spread_over placement max_run_time on_members_change restart reschedule":                            InPlace,
		"instances min_available max_running after percent task_scheduler keep_volumes":                                                  NoChange,
		"job type priority preemptible revocable controller kill_on_preempt min_success keep update tasks":                               NoChange,
	} {
		for _, one := range strings.Fields(key) {
			want[one] = change
		}
	}
	// They are keys of a task; some also of a job, where they concern no instance.
	task := map[string]Change{"policies": InPlace, "max_restarts": InPlace, "stop_delay": InPlace}
	for n := range Mutants() {
		old, now, path := Mutant(n)
		if key := seeing(jobFields[:], old, now)[0]; key != "tasks" {
			if got := old.ChangeTo(now); got != want[key] {
				t.Errorf("%s: got %s, want %s", path, got, want[key])
			}
			continue
		}
		if len(now.Tasks) != 1 {
			continue
		}
		key := seeing(taskFields[:], &old.Tasks[0], &now.Tasks[0])[0]
		expected, known := want[key]
		if own, ok := task[key]; ok {
			expected, known = own, true
		}
		if key == "disconnect" && strings.HasSuffix(path, "StopAfterMillis") {
			expected = Replace // its supervisor was told
		}
		if strings.HasSuffix(path, ".Constraints[0].Soft") || strings.HasSuffix(path, ".Constraints[+]") {
			expected = ByNode // else it is and stays a preference
		}
		if got := old.Tasks[0].ChangeTo(&now.Tasks[0]); got != expected || !known {
			t.Errorf("%s: got %s, want %s (in the table: %v)", path, got, expected, known)
		}
	}
}

// TestBytesAreThoseWritten counts the bytes of jobs with one value or all, and finds the version that they need: as if
// they were written, and their fields compared with empty ones.
func TestBytesAreThoseWritten(t *testing.T) {
	check := func(path string, job *Job) {
		version, none := uint16(1), &Job{Tasks: make([]Task, 1)}
		for _, f := range jobFields {
			if f.since > version && !codec.Equal(job, none, f.code) {
				version = f.since
			}
		}
		for i := range job.Tasks {
			for _, f := range taskFields {
				if f.since > version && !codec.Equal(&job.Tasks[i], &none.Tasks[0], f.code) {
					version = f.since
				}
			}
		}
		c := codec.Writer()
		c.Version = version
		if job.Code(c); job.Version() != version || job.Bytes() != int64(len(c.Data)) {
			t.Errorf("%s: version %d and %d bytes, want %d and %d", path, job.Version(), job.Bytes(), version, len(c.Data))
		}
	}
	blank := func() *Job { return &Job{Tasks: make([]Task, 1)} }
	for n := range mutations("", reflect.ValueOf(blank()).Elem()) {
		job := blank()
		m := mutations("", reflect.ValueOf(job).Elem())[n]
		m.do()
		check(m.path, job)
	}
	for n := range Mutants() {
		_, job, path := Mutant(n)
		check(path, job)
	}
	for bit := range 63 {
		for _, value := range []int64{1<<bit - 1, 1 << bit} {
			check(fmt.Sprint("an amount of ", value), &Job{Tasks: []Task{{DiskBytesMax: value}}})
		}
	}
}
