package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// written is what a member's log holds.
type written struct {
	Contents
	// snapshot is the entry after which it goes on: all before is in the database.
	snapshot uint64
	// changed is the last entry that changes the members.
	changed uint64

	snapshots []uint64
	first     uint64 // entry of the first segment
	term      uint64 // in which it stood last
}

// ReadLog reads the log of a member, which may run, as far as that is written. The error is ErrNoMember if there is
// none, and a *Damage if it is not whole.
func ReadLog(dir string) (Contents, error) {
	m := newMember(dir)
	var err error
	if m.names, err = segments(m.log); err != nil {
		return Contents{}, m.damage(m.log, err)
	}
	if len(m.names) == 0 {
		return Contents{}, fmt.Errorf("%s: %w", dir, ErrNoMember)
	}
	w, err := m.readLog()
	return w.Contents, err
}

// segments returns the names of the files of a log, in order; none if there is no log.
func segments(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".wal") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// readLog reads all segments. Only the last one may be torn off: what was written last was not acknowledged then.
func (m *member) readLog() (written, error) {
	w, next, sum := written{}, uint64(0), uint32(0)
	for i, name := range m.names {
		path := filepath.Join(m.log, name)
		var sequence, index uint64
		if _, err := fmt.Sscanf(name, "%016x-%016x.wal", &sequence, &index); err != nil {
			return w, m.damage(path, fmt.Errorf("its name is not that of a segment: %w", err))
		}
		if i == 0 {
			w.first = index
		} else if sequence != next {
			return w, m.damage(m.log, fmt.Errorf("the segment before %s is missing", name))
		}
		next = sequence + 1
		var err error
		if sum, err = w.readSegment(path, sum); errors.Is(err, io.ErrUnexpectedEOF) && i == len(m.names)-1 {
			err = nil
		}
		if err != nil {
			return w, m.damage(path, err)
		}
	}
	for _, s := range w.snapshots {
		if s <= w.Committed {
			w.snapshot = s
		}
	}
	w.Index = max(w.Index, w.snapshot)
	if w.Term == 0 {
		w.Term = w.term // it has no entries yet
	}
	switch {
	case w.Member == 0:
		return w, m.damage(m.log, errors.New("it does not say whose it is"))
	case w.first > w.snapshot:
		return w, m.damage(m.log, fmt.Errorf("its segments before entry %d are missing", w.first))
	case w.Committed > w.Index:
		return w, m.damage(filepath.Join(m.log, m.names[len(m.names)-1]),
			fmt.Errorf("it ends at entry %d, and a majority had %d: its end is lost", w.Index, w.Committed))
	}
	return w, nil
}

// readSegment reads a file, which goes on from one whose sum is given, and returns its own.
func (w *written) readSegment(path string, sum uint32) (uint32, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	record, decoder := &walpb.Record{}, wal.NewDecoder(fileutil.NewFileReader(file))
	for {
		at := decoder.LastOffset()
		err := decoder.Decode(record)
		if errors.Is(err, io.EOF) {
			return decoder.LastCRC(), nil
		}
		if err == nil && record.GetType() == wal.CrcType {
			if sum != 0 && record.GetCrc() != sum {
				err = wal.ErrCRCMismatch
			}
			sum = 0
			decoder.UpdateCRC(record.GetCrc())
		} else if err == nil {
			err = w.read(record)
		}
		if err != nil {
			return 0, fmt.Errorf("at byte %d: %w", at, err)
		}
	}
}

// read takes what a record says.
func (w *written) read(record *walpb.Record) error {
	switch record.GetType() {
	case wal.MetadataType:
		whose := &etcdserverpb.Metadata{}
		err := proto.Unmarshal(record.GetData(), whose)
		if err == nil && w.Member != 0 && w.Member != whose.GetNodeID() {
			err = wal.ErrMetadataConflict
		}
		w.Member = whose.GetNodeID()
		return err
	case wal.EntryType:
		return w.readEntry(record.GetData())
	case wal.StateType:
		state := &raftpb.HardState{}
		if err := proto.Unmarshal(record.GetData(), state); err != nil {
			return err
		}
		w.Committed, w.term = state.GetCommit(), state.GetTerm()
	case wal.SnapshotType:
		s := &walpb.Snapshot{}
		if err := proto.Unmarshal(record.GetData(), s); err != nil {
			return err
		}
		w.snapshots = append(w.snapshots, s.GetIndex())
	default:
		return fmt.Errorf("there is no record of type %d", record.GetType())
	}
	return nil
}

// readEntry takes what an entry says, but for its data: these are many, and large.
func (w *written) readEntry(message []byte) error {
	e := &raftpb.Entry{}
	head := message
	for at := 0; at < len(message); {
		number, _, n := protowire.ConsumeField(message[at:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		if number == entryData {
			head = message[:at]
			break
		}
		at += n
	}
	if err := proto.Unmarshal(head, e); err != nil {
		return err
	}
	w.Term, w.Index = e.GetTerm(), e.GetIndex()
	if e.GetType() != raftpb.EntryNormal {
		w.changed = e.GetIndex()
	}
	return nil
}

// entryData is the number of the last field of an entry.
const entryData = 4
