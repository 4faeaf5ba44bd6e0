package program

import (
	"fmt"

	"starling/driver"
	"starling/driver/plain"
)

// Accounts are the files of accounts that a task finds whose user is its job's own, with its home: programs ask who
// they are. None for another user.
func Accounts(name, home string) (map[string][]byte, error) {
	number, own := driver.OwnNumber(name)
	if !own {
		return nil, nil
	}
	files := map[string][]byte{}
	for path, line := range map[string]string{
		"/etc/passwd": fmt.Sprintf("task:x:%d:%d::%s:/bin/sh\n", number, number, home),
		"/etc/group":  fmt.Sprintf("task:x:%d:\n", number),
	} {
		text, err := plain.Read(path)
		if err != nil {
			return nil, err
		}
		files[path] = append(text, line...)
	}
	return files, nil
}
