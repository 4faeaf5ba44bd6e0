package meant

import "testing"

// TestOf finds the names that differ little, and those that other systems have.
func TestOf(t *testing.T) {
	names := []string{"instances", "command", "memory", "env", "stop_grace"}
	for written, want := range map[string]string{
		"comand": "command", "Instances": "instances", "stop-grace": "stop_grace", "count": "instances",
		"replicas": "instances", "mem": "memory", "environment": "env", "depends_on": "", "colour": "",
	} {
		if got := Of(written, names); got != want {
			t.Errorf("%s: got %q, want %q", written, got, want)
		}
	}
}
