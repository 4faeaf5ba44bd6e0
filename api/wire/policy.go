package wire

import (
	"slices"

	"google.golang.org/protobuf/proto"

	starlingv1 "starling/api/v1"
	"starling/terms"
	"starling/terms/lifecycle"
)

func updateMessage(u *terms.UpdatePolicy) *starlingv1.UpdatePolicy {
	return &starlingv1.UpdatePolicy{
		BatchSize: u.BatchSize, Canaries: u.Canaries, AutoPromote: u.AutoPromote, MinHealthyMillis: u.MinHealthyMillis,
		HealthyDeadlineMillis: u.HealthyDeadlineMillis, ProgressDeadlineMillis: u.ProgressDeadlineMillis,
		AttemptsMax: u.AttemptsMax,
		FailuresMax: u.FailuresMax, Rollback: u.Rollback, StartPaused: u.StartPaused, SameNode: u.SameNode,
	}
}

func updateOf(m *starlingv1.UpdatePolicy) terms.UpdatePolicy {
	return terms.UpdatePolicy{
		BatchSize: m.GetBatchSize(), Canaries: m.GetCanaries(), AutoPromote: m.GetAutoPromote(),
		MinHealthyMillis:      m.GetMinHealthyMillis(),
		HealthyDeadlineMillis: m.GetHealthyDeadlineMillis(), ProgressDeadlineMillis: m.GetProgressDeadlineMillis(),
		AttemptsMax: m.GetAttemptsMax(), FailuresMax: m.GetFailuresMax(), Rollback: m.GetRollback(),
		StartPaused: m.GetStartPaused(),
		SameNode:    m.GetSameNode(),
	}
}

// policyMessages adds what a task says about failures, health and what it keeps.
func policyMessages(m *starlingv1.TaskSpec, t *terms.Task) {
	m.Reschedule = &starlingv1.Reschedule{
		AttemptsMax: t.Reschedule.AttemptsMax, IntervalMillis: t.Reschedule.IntervalMillis,
		DelayMillis:    t.Reschedule.DelayMillis,
		DelayMaxMillis: t.Reschedule.DelayMaxMillis, Growth: t.Reschedule.Growth.String(),
	}
	m.Disconnect = &starlingv1.Disconnect{
		LostAfterMillis: t.Disconnect.LostAfterMillis, Wait: t.Disconnect.Wait, Keep: t.Disconnect.Keep.String(),
		StopAfterMillis: t.Disconnect.StopAfterMillis,
	}
	m.OnMembersChange = t.OnMembersChange.String()
	m.Policies, m.MaxRestarts = lifecycleMessages(t.Policies), proto.Uint32(t.MaxRestarts)
	for _, c := range t.Checks {
		m.Checks = append(m.Checks, &starlingv1.Check{
			Kind: c.Kind.String(), Port: c.Port, Path: c.Path, Command: c.Command, IntervalMillis: c.IntervalMillis,
			TimeoutMillis: c.TimeoutMillis, FailuresMax: c.FailuresMax,
		})
	}
	for _, v := range t.Volumes {
		m.Volumes = append(m.Volumes, v.Name)
	}
}

// policiesOf reads it back. A growth or survivor that is none becomes one that package validate names.
func policiesOf(t *terms.Task, m *starlingv1.TaskSpec) {
	t.Reschedule = terms.Reschedule{
		AttemptsMax: m.GetReschedule().GetAttemptsMax(), IntervalMillis: m.GetReschedule().GetIntervalMillis(),
		DelayMillis: m.GetReschedule().GetDelayMillis(), DelayMaxMillis: m.GetReschedule().GetDelayMaxMillis(),
		Growth: terms.Growth(numberOf(m.GetReschedule().GetGrowth(), terms.Growths())),
	}
	t.Disconnect = terms.Disconnect{
		LostAfterMillis: m.GetDisconnect().GetLostAfterMillis(), Wait: m.GetDisconnect().GetWait(),
		Keep:            terms.Survivor(numberOf(m.GetDisconnect().GetKeep(), terms.Survivors())),
		StopAfterMillis: m.GetDisconnect().GetStopAfterMillis(),
	}
	t.OnMembersChange = terms.Signal(numberOf(m.GetOnMembersChange(), terms.Signals()))
	t.Policies, t.MaxRestarts = lifecycleOf(m.GetPolicies()), lifecycle.RestartsDefault
	if m != nil && m.MaxRestarts != nil {
		t.MaxRestarts = m.GetMaxRestarts()
	}
	for _, one := range m.GetChecks() {
		t.Checks = append(t.Checks, terms.Check{
			Kind: terms.CheckKind(max(slices.Index(terms.CheckKinds(), one.GetKind()), 0)), Port: one.GetPort(),
			Path:    one.GetPath(),
			Command: one.GetCommand(), IntervalMillis: one.GetIntervalMillis(), TimeoutMillis: one.GetTimeoutMillis(),
			FailuresMax: one.GetFailuresMax(),
		})
	}
	for _, name := range m.GetVolumes() {
		t.Volumes = append(t.Volumes, terms.Volume{Name: name})
	}
}

func lifecycleMessages(all []lifecycle.Policy) (messages []*starlingv1.LifecyclePolicy) {
	for _, p := range all {
		m := &starlingv1.LifecyclePolicy{ExitCodes: p.ExitCodes, Action: p.Action.String(), DelayMillis: p.DelayMillis}
		for _, e := range p.On {
			m.On = append(m.On, e.String())
		}
		messages = append(messages, m)
	}
	return messages
}

// lifecycleOf reads them back. A word that is none becomes one that package validate names.
func lifecycleOf(messages []*starlingv1.LifecyclePolicy) (all []lifecycle.Policy) {
	for _, m := range messages {
		p := lifecycle.Policy{
			ExitCodes: m.GetExitCodes(), Action: lifecycle.Action(max(slices.Index(lifecycle.Actions(), m.GetAction()), 0)),
			DelayMillis: m.GetDelayMillis(),
		}
		for _, word := range m.GetOn() {
			p.On = append(p.On, lifecycle.Event(max(slices.Index(lifecycle.Events(), word), 0)))
		}
		all = append(all, p)
	}
	return all
}

// numberOf returns the number of a word: 0 for none, and one beyond them all for a word that is not among them.
func numberOf(word string, words []string) int {
	number := slices.Index(words, word)
	switch {
	case word == "":
		return 0
	case number < 0:
		return len(words)
	}
	return number
}
