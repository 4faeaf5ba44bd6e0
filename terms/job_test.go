package terms

import "testing"

func TestRestartDelay(t *testing.T) {
	doubling := Restart{DelayMillis: 1000, DelayMaxMillis: 60_000}
	cases := []struct {
		restart  Restart
		failures uint32
		want     int64
	}{
		{doubling, 1, 1000},
		{doubling, 2, 2000},
		{doubling, 6, 32_000},
		{doubling, 7, 60_000},
		{doubling, 1 << 31, 60_000},
		{Restart{}, 1, 0},
		{Restart{}, 1000, 0},
		{Restart{DelayMillis: 5, DelayMaxMillis: 5}, 9, 5},
		{Restart{DelayMillis: 7, DelayMaxMillis: 20}, 3, 20},
		{Restart{DelayMillis: DelayMillisMax, DelayMaxMillis: DelayMillisMax}, 1<<32 - 1, DelayMillisMax},
	}
	for _, c := range cases {
		if got := c.restart.Delay(c.failures); got != c.want {
			t.Errorf("%+v after %d failures: %d ms, want %d", c.restart, c.failures, got, c.want)
		}
	}
}
