package driver

// Environment is a list of variables in which each has one value, the last that was set.
type Environment struct {
	// All has them as Task.Env wants them.
	All []string
	at  map[string]int
}

// Set gives a variable its value.
func (e *Environment) Set(name, value string) {
	if at, known := e.at[name]; known {
		e.All[at] = name + "=" + value
		return
	}
	if e.at == nil {
		e.at = map[string]int{}
	}
	e.at[name] = len(e.All)
	e.All = append(e.All, name+"="+value)
}
