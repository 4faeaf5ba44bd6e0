package trace

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"starling/terms"
)

// sample reads the trace of testdata.
func sample(t *testing.T) *Trace {
	t.Helper()
	open := func(name string) *os.File {
		file, err := os.Open("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	machines, err1 := ReadMachines("nodes.csv", open("nodes.csv"))
	tasks, err2 := ReadTasks("tasks.csv", open("tasks.csv"))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return &Trace{machines, tasks}
}

func TestRead(t *testing.T) {
	got := sample(t)
	want := &Trace{
		[]Machine{
			{"a", terms.Resources{8000, 8 << 30, 0}, 2, "A100"}, {"b", terms.Resources{8000, 8 << 30, 0}, 2, "T4"},
			{"c", terms.Resources{4000, 4 << 30, 0}, 0, ""},
		},
		[]Task{
			{"half", Shape{terms.Resources{1000, 1 << 30, 0}, 500, ""}},
			{"third", Shape{terms.Resources{1000, 1 << 30, 0}, 300, "A100|T4"}},
			{"one", Shape{terms.Resources{2000, 1 << 30, 0}, 1000, "A100"}},
			{"two", Shape{terms.Resources{2000, 2 << 30, 0}, 2000, ""}},
			{"four", Shape{terms.Resources{2000, 2 << 30, 0}, 4000, ""}},
			{"none", Shape{terms.Resources{3000, 2 << 30, 0}, 0, ""}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestReadTellsWhatIsWrong(t *testing.T) {
	const nodes, tasks = "sn,cpu_milli,memory_mib,gpu,model\n", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
	for _, c := range []struct{ what, text, want string }{
		{"n", "", "n.csv: is empty: its first line must name the columns sn, cpu_milli, memory_mib, gpu"},
		{"n", nodes, "n.csv: has no row below its header"},
		{"n", "sn,cpu_milli,gpu\n", "n.csv:1: column memory_mib is missing; needed are sn, cpu_milli, memory_mib, gpu"},
		{"n", "sn,cpu_milli,memory_mib,gpu,disk\n",
			"n.csv:1:29: column disk is not known; known are sn, cpu_milli, memory_mib, gpu, model"},
		{"n", "sn,gpu,cpu_milli,memory_mib,gpu\n", "n.csv:1:29: column gpu stands here a second time"},
		{"n", nodes + "a,1,2\n", "n.csv:2:1: wrong number of fields"},
		{"n", nodes + "a,1,2,3,\"x\n", "n.csv:2:12: extraneous or missing \" in quoted-field"},
		{"n", nodes + "a,1,2,3,x\nb,1,many,3,x\n",
			`n.csv:3:5: column memory_mib must be a whole number from 0 to 1099511627776, is "many"`},
		{"n", nodes + "a,1.5,2,3,x\n", `n.csv:2:3: column cpu_milli must be a whole number from 0 to 1000000000, is "1.5"`},
		{"n", nodes + "a,1,2,-1,x\n", `n.csv:2:7: column gpu must be a whole number from 0 to 65536, is "-1"`},
		{"n", nodes + "a,1,2,3,x\n\na,1,2,3,x\n", `n.csv:4:1: column sn has "a", as in line 2: each needs a name of its own`},
		{"n", nodes + ",1,2,3,x\n", "n.csv:2:1: column sn must not be empty"},
		{"n", nodes + "-a,1,2,3,x\n", `n.csv:2:1: column sn must be of letters, digits, "-", "_" and "."`},
		{"t", tasks + "a,1,2,0,500,\n", "t.csv:2:9: column gpu_milli must be 0 where num_gpu is 0, is 500"},
		{"t", tasks + "a,1,2,1,0,\n", "t.csv:2:9: column gpu_milli must be above 0 where num_gpu is 1"},
		{"t", tasks + "a,1,2,2,500,\n", "t.csv:2:9: column gpu_milli must be 1000 where num_gpu is 2, is 500"},
		{"t", tasks + "a,1,2,1,1001,\n", `t.csv:2:9: column gpu_milli must be a whole number from 0 to 1000, is "1001"`},
		{"t", tasks + "a,1,2,1,500,T4|\n", `t.csv:2:13: column gpu_spec must be models with "|" between them, is "T4|"`},
	} {
		var err error
		if c.what == "n" {
			_, err = ReadMachines("n.csv", strings.NewReader(c.text))
		} else {
			_, err = ReadTasks("t.csv", strings.NewReader(c.text))
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}
