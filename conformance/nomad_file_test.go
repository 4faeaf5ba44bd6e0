package conformance

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"starling/terms"
)

// nomadNow is the moment that the files call now.
const nomadNow terms.Time = 1_700_000_000_000

// reconcileFile is a file of the folders group and probe; testdata/nomad/README.md describes it.
type reconcileFile struct {
	Name, Summary, Source string
	PeerTest              string `yaml:"peer_test"`
	Tags                  []string
	Input                 reconcileInput
	// Expected is what the peer gives, WithEvaluation what differs where the test named no evaluation.
	Expected       yaml.Node
	WithEvaluation yaml.Node `yaml:"expected_if_eval_id_nonempty"`
	// PeerResult and SlotExpected stand in a probe: what the peer gives, and what slots must give.
	PeerResult   yaml.Node `yaml:"peer_result"`
	SlotExpected yaml.Node `yaml:"slot_expected"`
	// IndexCheck lists what the peer's result leaves behind; breaches finds that out by itself.
	IndexCheck yaml.Node `yaml:"index_check_after"`
	SlotNote   string    `yaml:"slot_note"`
	// Picker tells which of two reconnecting allocations the test made the peer prefer.
	Picker struct {
		Forced string `yaml:"forced_by_test"`
		Called bool
		Same   bool `yaml:"same_result_with_real_strategy"`
	}
	Other map[string]yaml.Node `yaml:",inline"`
}

// reconcileInput is what the peer's reconciler was given.
type reconcileInput struct {
	Now          offset
	Job          *nomadJob
	Batch        bool
	EvalID       string `yaml:"eval_id"`
	Deployment   *nomadDeployment
	Nodes        map[string]*nomadNode `yaml:"tainted_nodes"`
	Defaults     yaml.Node             `yaml:"alloc_defaults"`
	Allocs       []yaml.Node
	AllocsParsed []nomadAllocation `yaml:"-"`
}

type nomadJob struct {
	Type          string
	Version       uint32
	CreateIndex   uint32 `yaml:"create_index"`
	Stop          bool
	Multiregion   bool
	Periodic      bool
	Parameterized bool
	Groups        []nomadGroup
}

type nomadGroup struct {
	Name       string
	Count      uint32
	Update     *nomadUpdate
	Reschedule *nomadReschedule
	Disconnect *nomadDisconnect
}

type nomadUpdate struct {
	MaxParallel      uint32 `yaml:"max_parallel"`
	Canary           uint32
	AutoPromote      bool   `yaml:"auto_promote"`
	AutoRevert       bool   `yaml:"auto_revert"`
	HealthCheck      string `yaml:"health_check"`
	MinHealthyTime   offset `yaml:"min_healthy_time"`
	HealthyDeadline  offset `yaml:"healthy_deadline"`
	ProgressDeadline offset `yaml:"progress_deadline"`
	Stagger          offset
}

type nomadReschedule struct {
	Attempts      uint32
	Unlimited     bool
	Interval      offset
	Delay         offset
	MaxDelay      offset `yaml:"max_delay"`
	DelayFunction string `yaml:"delay_function"`
}

type nomadDisconnect struct {
	LostAfter         offset `yaml:"lost_after"`
	StopOnClientAfter offset `yaml:"stop_on_client_after"`
	Replace           *bool
	Reconcile         string
}

type nomadNode struct {
	Status   string
	Draining bool
}

type nomadDeployment struct {
	ID             string
	Status         string
	Description    string
	JobVersion     uint32 `yaml:"job_version"`
	JobCreateIndex uint32 `yaml:"job_create_index"`
	Groups         map[string]nomadDeploymentGroup
}

type nomadDeploymentGroup struct {
	DesiredTotal     uint32 `yaml:"desired_total"`
	DesiredCanaries  uint32 `yaml:"desired_canaries"`
	Promoted         bool
	PlacedAllocs     uint32   `yaml:"placed_allocs"`
	HealthyAllocs    uint32   `yaml:"healthy_allocs"`
	UnhealthyAllocs  uint32   `yaml:"unhealthy_allocs"`
	AutoPromote      bool     `yaml:"auto_promote"`
	AutoRevert       bool     `yaml:"auto_revert"`
	ProgressDeadline offset   `yaml:"progress_deadline"`
	PlacedCanaries   []string `yaml:"placed_canaries"`
}

type nomadAllocation struct {
	ID, Group       string
	Index           uint32
	ParsedIndex     uint32 `yaml:"peer_parsed_index"`
	Version         *uint32
	CreateIndex     *uint32 `yaml:"create_index"`
	Desired, Client string
	SpecChange      string `yaml:"spec_change"`
	Node            string
	Deployment      string
	Healthy         *bool
	Canary          bool
	Transition      nomadTransition
	FollowUp        string        `yaml:"followup_eval"`
	Tracker         *nomadTracker `yaml:"reschedule_tracker"`
	Previous, Next  string
	Modified        *offset
	History         []nomadHistory            `yaml:"client_history"`
	TaskStates      map[string]nomadTaskState `yaml:"task_states"`
	OwnPolicy       yaml.Node                 `yaml:"own_policy"`
	Score           int32                     `yaml:"norm_score"`
}

type nomadTransition struct {
	Migrate          bool
	Reschedule       bool
	ForceReschedule  bool `yaml:"force_reschedule"`
	DisablePlacement bool `yaml:"migrate_disable_placement"`
	NoShutdownDelay  bool `yaml:"no_shutdown_delay"`
}

type nomadTracker struct {
	Events yaml.Node
	Last   string
}

type nomadEvent struct {
	At    offset
	Delay offset
}

type nomadHistory struct {
	Client string
	At     offset
}

type nomadTaskState struct {
	State       string
	Failed      bool
	Started     *offset
	Finished    *offset
	Restarts    int
	LastRestart *offset `yaml:"last_restart"`
}

// nomadExpected is a result of the peer, in its words; ours is written in the same.
type nomadExpected struct {
	Counts      map[string]int
	Place       []nomadPlacement
	Destructive []nomadReplacement
	Inplace     []string
	Stop        []nomadStop
	Attributes  []nomadMark                 `yaml:"attribute_updates"`
	Disconnects []nomadMark                 `yaml:"disconnect_updates"`
	Reconnects  []string                    `yaml:"reconnect_updates"`
	FollowUps   followUpsByGroup            `yaml:"followup_evals"`
	Created     *nomadDeployment            `yaml:"deployment_created"`
	Updates     []nomadDeploymentUpdate     `yaml:"deployment_updates"`
	Paused      *bool                       `yaml:"deployment_paused"`
	Desired     map[string]map[string]int32 `yaml:"desired_tg_updates"`
	Note        string
}

type nomadPlacement struct {
	Group      string
	Index      uint32
	Canary     bool
	Reschedule bool
	Lost       bool
	Previous   string
	Stable     bool    `yaml:"stable_version"`
	MinVersion *uint32 `yaml:"min_version"`
}

type nomadReplacement struct {
	Group string
	Index uint32
	Stop  string
}

type nomadStop struct {
	Alloc     string
	OneOf     []string `yaml:"one_of"`
	Index     uint32
	Why       string
	SetClient string `yaml:"set_client"`
	FollowUp  string `yaml:"followup_eval"`
}

type followUpsByGroup map[string][]nomadFollowUp

type nomadMark struct {
	Alloc     string
	SetClient string `yaml:"set_client"`
	FollowUp  string `yaml:"followup_eval"`
	until     terms.Time
}

type nomadFollowUp struct {
	ID      string
	At      offset `yaml:"wait_until"`
	Trigger string `yaml:"triggered_by"`
}

type nomadDeploymentUpdate struct{ Deployment, Description, Status string }

// offset is a time from now, or a span, in milliseconds.
type offset int64

// UnmarshalYAML reads "now", "+5m", "-10s", "1h40m" and plain 0.
func (o *offset) UnmarshalYAML(node *yaml.Node) error {
	text := strings.TrimSpace(node.Value)
	if text == "now" || text == "0" {
		*o = 0
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	*o = offset(d / time.Millisecond)
	return nil
}

func (o offset) String() string { return (time.Duration(o) * time.Millisecond).String() }

// time returns the moment that the offset means.
func (o offset) time() terms.Time { return nomadNow + terms.Time(o) }

// readReconcile reads a file of the folders group and probe. A key that is not known is an error.
func readReconcile(data []byte) (*reconcileFile, error) {
	f := &reconcileFile{}
	if err := yaml.Load(data, f, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	if err := f.Input.checkWords(); err != nil {
		return nil, err
	}
	return f, f.Input.parse()
}

// checkWords returns an error if the job, its deployment or a node has a word that is not known.
func (in *reconcileInput) checkWords() error {
	if in.Job != nil {
		for _, g := range in.Job.Groups {
			if r := g.Reschedule; r != nil && !has(growths, r.DelayFunction) {
				return fmt.Errorf("the word %q is not known", r.DelayFunction)
			}
			if d := g.Disconnect; d != nil && !has(survivors, d.Reconcile) {
				return fmt.Errorf("the word %q is not known", d.Reconcile)
			}
		}
	}
	if d := in.Deployment; d != nil && !has(updateStates, d.Status) {
		return fmt.Errorf("the word %q is not known", d.Status)
	}
	for _, n := range in.Nodes {
		if n != nil && !has(nodeStates, n.Status) {
			return fmt.Errorf("the word %q is not known", n.Status)
		}
	}
	return nil
}

// parse reads the allocations, with their defaults. Where two carry one ID the later counts, as in the peer.
func (in *reconcileInput) parse() error {
	for i := range in.Allocs {
		var a nomadAllocation
		if err := under(&in.Defaults, &in.Allocs[i]).Load(&a, yaml.WithKnownFields()); err != nil {
			return fmt.Errorf("allocation %d: %w", i, err)
		}
		kept := in.AllocsParsed[:0]
		for _, earlier := range in.AllocsParsed {
			if earlier.ID != a.ID {
				kept = append(kept, earlier)
			}
		}
		in.AllocsParsed = append(kept, a)
	}
	return nil
}

// under returns the mapping over with what it lacks taken from the mapping defaults.
func under(defaults, over *yaml.Node) *yaml.Node {
	if defaults.Kind != yaml.MappingNode {
		return over
	}
	merged := *over
	merged.Content = append([]*yaml.Node(nil), over.Content...)
	for i := 0; i+1 < len(defaults.Content); i += 2 {
		if valueOf(over, defaults.Content[i].Value) == nil {
			merged.Content = append(merged.Content, defaults.Content[i], defaults.Content[i+1])
		}
	}
	return &merged
}

// valueOf returns the value of a key in a mapping, nil if it has none.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
