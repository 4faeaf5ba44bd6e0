package replica_test

import (
	"os"
	"testing"

	"starling/replica"
	"starling/replica/forecast"
)

func TestMain(m *testing.M) {
	replica.Tries = forecast.Tries
	os.Exit(m.Run())
}
