package facts

// Assert ends the fold where the books are wrong, before anything is made of that: a value is right or there is none.
// It is kept on in production, so what it asks must cost next to nothing.
func Assert(holds bool, what string) {
	if !holds {
		panic("cluster: " + what)
	}
}
