package remote

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"starling/cmd/starling/console"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// ofThePast is the annotation of commands that know a past.
const ofThePast = "past"

// Past returns the command as one that can ask about the past, for it reads the value and nothing else.
func Past(command *cobra.Command) *cobra.Command {
	if command.Annotations == nil {
		command.Annotations = map[string]string{}
	}
	command.Annotations[ofThePast] = "yes"
	return command
}

// moment is an index or a time, as the API takes it.
type moment struct {
	text string
	// at is the time, zero for an index.
	at time.Time
}

// Set implements pflag.Value.
func (m *moment) Set(text string) error {
	read, at, err := Moment(text, time.Now())
	*m = moment{read, at}
	return err
}

// String implements pflag.Value.
func (m *moment) String() string { return m.text }

// Type implements pflag.Value.
func (m *moment) Type() string { return "moment" }

// Moment reads an index such as 4711, a time such as 2006-01-02T15:04:05Z, a time of the last 24 hours such as 14:30,
// a day such as 2006-01-02, of which it is the beginning, or how long ago such as -10m. It returns it as the API takes
// it, and the time if it is one.
func Moment(text string, now time.Time) (string, time.Time, error) {
	if regexp.MustCompile(`^\d{1,19}$`).MatchString(text) {
		return text, time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = clock(text, now)
	}
	if err != nil {
		at, err = time.ParseInLocation(time.DateOnly, text, now.Location())
	}
	if ago, isDuration := strings.CutPrefix(text, "-"); err != nil && isDuration {
		var d time.Duration
		d, err = time.ParseDuration(ago)
		at = now.Add(-d)
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("must be an index such as 4711, a time such as 2006-01-02T15:04:05Z, 2006-01-02 or 14:30, or how long ago, such as -10m")
	}
	return at.UTC().Format(time.RFC3339Nano), at, nil
}

// clock reads a time of the last 24 hours.
func clock(text string, now time.Time) (time.Time, error) {
	layout := "15:04"
	if strings.Count(text, ":") == 2 {
		layout = "15:04:05"
	}
	read, err := time.Parse(layout, text)
	if err != nil {
		return time.Time{}, err
	}
	year, month, day := now.Date()
	at := time.Date(year, month, day, read.Hour(), read.Minute(), read.Second(), 0, now.Location())
	if at.After(now) {
		at = at.AddDate(0, 0, -1)
	}
	return at, nil
}

// Now returns the time of an answer, to which ages are told: the present, unless the past was asked about.
func (r *Remote) Now(told *timestamppb.Timestamp) time.Time {
	switch {
	case r.at.text == "":
		return time.Now()
	case !r.at.at.IsZero():
		return r.at.at
	}
	return told.AsTime()
}

// silentSince is when the journal answered the peer last, zero if it does or nobody was asked.
func (r *Remote) silentSince() time.Time {
	if r.peer == nil {
		return time.Time{}
	}
	return r.peer.SilentSince()
}

// TellMoment tells of which moment an answer is, once: to people if the past was asked about, and to all if the journal
// does not answer the peer, so that this may be out of date.
func (r *Remote) TellMoment(answer proto.Message) {
	if since := r.silentSince(); !since.IsZero() && !r.told {
		r.told = true
		r.Hint("warning: the journal has not answered since %s, for %s: this is what the peer knows, and may be out of date",
			console.Clock(since, time.Now()), time.Since(since).Round(time.Second))
	}
	one, ok := answer.(interface {
		GetIndex() uint64
		GetTime() *timestamppb.Timestamp
	})
	if r.at.text == "" || r.told || !r.ForPeople() || !ok {
		return
	}
	r.told = true
	if one.GetIndex() == 0 {
		r.Hint("as of index 0, before the first entry")
		return
	}
	r.Hint("as of index %d, %s", one.GetIndex(), console.Time(one.GetTime().AsTime()))
}
