package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/archive/depot"
	"starling/cmd/starling/exit"
	"starling/driver/record"
)

// Exported tells programs what a file holds.
type Exported struct {
	File string `json:"file"`
	From uint64 `json:"from,string"`
	To   uint64 `json:"to,string"`
}

// ExportTo writes entries into a file, which is there when all of it is, and returns which they are.
func ExportTo(ctx context.Context, peer *client.Client, question *starlingv1.ExportRequest,
	path string) (head *starlingv1.ExportResponse, err error) {
	if info, err := os.Stat(path); path == "" || path == "-" || err == nil && !info.Mode().IsRegular() {
		return nil, exit.Fail(exit.Usage, "%q is no file: name one that is to be made", path)
	}
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at // what is linked is replaced, not the link
	}
	file, err := depot.Begin(filepath.Dir(path), filepath.Base(path)+".")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name()) // it is not there any more when all went well
	err = peer.Export(ctx, question, func(piece *starlingv1.ExportResponse) error {
		if head == nil {
			head = piece
		}
		_, err := file.Write(piece.GetData())
		return err
	})
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, err
	}
	return head, errors.Join(os.Rename(file.Name(), path), record.Sync(filepath.Dir(path)))
}
