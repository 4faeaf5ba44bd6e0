package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"starling/api/client"
	starlingv1 "starling/api/v1"
)

// ExportTo writes entries into a file, which is there when all of it is, and returns which they are.
func ExportTo(ctx context.Context, peer *client.Client, question *starlingv1.ExportRequest,
	path string) (head *starlingv1.ExportResponse, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.unfinished")
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
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return head, os.Rename(file.Name(), path)
}
