package jobs

import (
	"context"
	"fmt"
	"strings"

	"starling/api/client"
	starlingv1 "starling/api/v1"
)

// endInJournal finds in the journal how a job has ended that is forgotten, as far as that is remembered; from is an
// entry before its end.
func endInJournal(ctx context.Context, peer *client.Client, name string, from uint64) *starlingv1.JobStatusResponse {
	e := &ending{name: name, slots: map[string]*starlingv1.Slot{}}
	// What was read before an error is what there is to say.
	_ = peer.TailJournal(ctx, &starlingv1.TailJournalRequest{From: from},
		func(answer *starlingv1.TailJournalResponse) error {
			for _, effect := range answer.GetEntry().GetEffects() {
				if effect.GetJob() == name && !e.status.GetJob().GetFinal() {
					e.take(effect)
				}
			}
			return nil
		})
	return e.status
}

// ending is how a job ended, by what the journal tells.
type ending struct {
	name   string
	status *starlingv1.JobStatusResponse
	slots  map[string]*starlingv1.Slot
	order  []string
}

// take notes what an entry did to the job.
func (e *ending) take(effect *starlingv1.EffectWords) {
	_, reason, _ := strings.Cut(effect.GetText(), ": ")
	switch effect.GetKind() {
	case "ended":
		slot, _, _ := strings.Cut(effect.GetAllocation(), "#")
		if e.slots[slot] == nil {
			e.order = append(e.order, slot)
		}
		e.slots[slot] = endedSlot(effect, reason)
	case "job finished":
		job := &starlingv1.Job{Name: e.name, Status: reason, Final: true, Counts: &starlingv1.Counts{}}
		e.status = &starlingv1.JobStatusResponse{Job: job}
		for _, name := range e.order {
			slot := e.slots[name]
			e.status.Slots = append(e.status.Slots, slot)
			if slot.GetEnded() == "exited" && slot.GetExitCode() == 0 {
				job.Counts.Succeeded++
			} else {
				job.Counts.Failed++
			}
		}
	}
}

// endedSlot reads how an allocation ended, in the words of effects.
func endedSlot(effect *starlingv1.EffectWords, reason string) *starlingv1.Slot {
	slot := &starlingv1.Slot{Allocation: effect.GetAllocation(), Node: effect.GetNode()}
	code := int32(0)
	if n, _ := fmt.Sscanf(reason, "exited with %d", &code); n == 1 {
		slot.Ended, slot.ExitCode = "exited", code
		return slot
	}
	if n, _ := fmt.Sscanf(reason, "killed by signal %d", &code); n == 1 {
		slot.Ended, slot.ExitCode = "killed by a signal", code+128
		return slot
	}
	slot.Ended, _, _ = strings.Cut(reason, ": ")
	if slot.GetEnded() == "out of memory" {
		slot.ExitCode = 137
	}
	return slot
}
