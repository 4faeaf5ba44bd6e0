package record

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// FolderNameMax is the longest name of a task's folder; what is derived from it must fit into 255 bytes.
const FolderNameMax = 200

// IDName is the record of an ID in its folder. Nothing else has such a name there.
const IDName = ".id.json"

// FolderName is an ID as the name of a folder: lower case letters, digits and "_-" stand for themselves, so do dots
// that are not first, all other bytes are %xx. Upper case is escaped because some file systems do not tell it apart. Of
// a name that would be too long there are the begin and, behind a "~", the digest of the ID; then the folder keeps the
// ID.
func FolderName(id string) (string, error) {
	if id == "" {
		return "", errors.New("the ID is empty")
	}
	var name strings.Builder
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			name.WriteByte(c)
		default:
			fmt.Fprintf(&name, "%%%02x", c)
		}
	}
	if name.Len() <= FolderNameMax {
		return name.String(), nil
	}
	digest := sha256.Sum256([]byte(id))
	return fmt.Sprintf("%s~%x", name.String()[:FolderNameMax-digestBytes*2-1], digest[:digestBytes]), nil
}

// digestBytes are what is kept of the digest of an ID.
const digestBytes = 16

// isShortened tells whether the name of a folder does not tell the whole ID.
func isShortened(name string) bool { return len(name) == FolderNameMax && strings.Contains(name, "~") }

// ErrNoID is what a folder is that was made and got no further.
var ErrNoID = errors.New("the folder does not tell its ID")

// KeepID stores the ID in its folder if the name does not tell it.
func KeepID(folder, id string) error {
	name, err := FolderName(id)
	if err != nil || !isShortened(name) {
		return err
	}
	kept := ""
	if _, err := Read(folder, IDName, &kept); err != nil || kept == id {
		return err
	}
	return WriteDurably(folder, IDName, id)
}

// IDOf is the ID of which FolderName made the folder's name.
func IDOf(folder string) (string, error) {
	name := filepath.Base(folder)
	id, err := url.PathUnescape(name)
	if isShortened(name) {
		var kept bool
		if kept, err = Read(folder, IDName, &id); err == nil && !kept {
			err = ErrNoID
		}
	}
	if err != nil {
		return "", err
	}
	if again, err := FolderName(id); err != nil || again != name {
		return "", fmt.Errorf("%q is not the folder of a task", name)
	}
	return id, nil
}
