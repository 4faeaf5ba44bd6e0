package files

import (
	"io"
	"os"

	"starling/cmd/starling/exit"
	"starling/terms/access"
)

// Secret reads what is to be kept as a secret from a file, or for "-" from the standard input.
func Secret(path string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, exit.Fail(exit.Usage, "%w", err)
		}
		defer file.Close()
		from = file
	}
	value, err := io.ReadAll(io.LimitReader(from, access.SecretBytesMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(value) > access.SecretBytesMax:
		return nil, exit.Fail(exit.Usage, "a secret has at most 64 KiB, and this has more: what is large belongs into a volume or "+
			"an image, with a secret that opens it")
	case len(value) == 0:
		return nil, exit.Fail(exit.Usage, "there is nothing to keep: give a FILE, or write it to the standard input")
	}
	return value, nil
}
