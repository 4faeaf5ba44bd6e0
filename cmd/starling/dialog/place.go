package dialog

// An interactive program runs in a session beside an instance that only holds its place: the session says in a file
// which process it is, and in another how it has ended. So the job ends with the program, with its status, and also
// when nobody comes or the session is lost.
const (
	holdPlace = `n=0
while [ ! -e .session.ended ]; do
	if [ -e .session ]; then
		kill -0 "$(cat .session)" 2>/dev/null || { sleep 1; [ -e .session.ended ] || exit 129; continue; }
	else
		n=$((n + 1)); [ $n -le 60 ] || { echo "no session was begun" >&2; exit 124; }
	fi
	sleep 1
done
exit "$(cat .session.ended)"`
	inPlace = `trap : INT QUIT
echo $$ >.session.new && mv .session.new .session || exit
"$@"
status=$?
echo $status >.session.new && mv .session.new .session.ended
exit $status`
)

// HoldPlace returns the program of an instance that holds the place of another, which comes within a minute, and ends
// as that does.
func HoldPlace() []string { return []string{"/bin/sh", "-c", holdPlace} }

// InPlace returns what runs a program in a session beside an instance that holds its place.
func InPlace(program []string) []string {
	return append([]string{"/bin/sh", "-c", inPlace, "sh"}, program...)
}
