package explain_test

import (
	"os"
	"testing"

	"starling/replica/forecast"
	"starling/schedule/explain"
)

func TestMain(m *testing.M) {
	explain.Tries = forecast.Tries
	os.Exit(m.Run())
}
