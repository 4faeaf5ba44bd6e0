package wording

import (
	"testing"

	"starling/terms"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Amount(terms.CPU, 500), "500m cpu"},
		{Amount(terms.CPU, 2000), "2 cpu"},
		{Amount(terms.CPU, 998_301), "998.4 cpu"},
		{Amount(terms.CPU, 99_999), "100 cpu"},
		{Amount(terms.Memory, 256<<20), "256 MiB memory"},
		{Amount(terms.Disk, 3<<29), "1.5 GiB disk"},
		{Bytes(0), "0 bytes"},
		{Bytes(1023), "1023 bytes"},
		{Bytes(1025), "1.1 KiB"},
		{Bytes(1<<30 + 1), "1.1 GiB"},
		{Bytes(1<<30 - 1), "1024 MiB"},
		{Bytes(1 << 60), "1 EiB"},
		{Bytes(1<<61 + 1), "2.1 EiB"},
		{Duration(999), "999ms"},
		{Duration(90_001), "1m31s"},
		{Duration(7_200_000), "2h"},
		{Plural(1, "node", "nodes"), "1 node"},
		{GaveWay("p/a", "q/b", "it was less important"), "q/b needed its room, and it was less important"},
		{GaveWay("p/a", "p/a", "its job gets fewer"), "its job gets fewer"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
