package dialog

import "io"

// escaping reads what is typed until "~." begins a line, which detaches as it does in ssh and in Nomad; "~~" there is a
// single "~".
type escaping struct {
	from   io.Reader
	detach func()
	// within tells that the last key was not the end of a line, tilde that it was a "~" which begins one.
	within, tilde bool
}

// Read implements io.Reader; p has room for two bytes at least.
func (e *escaping) Read(p []byte) (n int, err error) {
	typed := make([]byte, len(p)-1) // a "~" that was held back may come before it
	for n == 0 && err == nil {
		var count int
		count, err = e.from.Read(typed)
		for _, key := range typed[:count] {
			switch {
			case e.tilde && key == '.':
				e.detach()
				return n, io.EOF
			case !e.within && !e.tilde && key == '~':
				e.tilde = true
				continue
			case e.tilde && key != '~':
				p[n] = '~'
				n++
			}
			p[n] = key
			n++
			e.tilde, e.within = false, key != '\r' && key != '\n'
		}
	}
	return n, err
}
