package jobspec

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"starling/terms"
)

// quantityBytesMax bounds the text of a quantity; no exact one needs as many characters.
const quantityBytesMax = 40

// byteUnit is a suffix of an amount of bytes.
type byteUnit struct {
	suffix string
	bytes  int64
}

// byteUnits are the suffixes without the B that may follow them, largest first within each kind.
func byteUnits() []byteUnit {
	return []byteUnit{
		{"Pi", 1 << 50}, {"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10},
		{"P", 1e15}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1},
	}
}

const (
	cpuWords      = `cores as in 2 or 0.5, or thousandths of a core as in 500m`
	bytesWords    = `a number with a unit as in 256Mi, 1.5Gi, 10G or 4096B; Ki Mi Gi Ti Pi count by 1024, k M G T P by 1000`
	devicesWords  = `a number of devices as in 2, or a share of one as in 0.5`
	durationWords = `hours, minutes, seconds and milliseconds as in 5s, 1m30s or 500ms`
)

// Patterns of quantities for the schema. ParseCPU, ParseBytes and ParseDuration take no other texts.
const (
	decimalPattern  = `(0|[1-9][0-9]*)(\.[0-9]+)?`
	cpuPattern      = `^(` + decimalPattern + `|(0|[1-9][0-9]*)m)$`
	bytesPattern    = `^(0|` + decimalPattern + `([kMGTP]|[KMGTP]i|)B|` + decimalPattern + `([kMGTP]|[KMGTP]i))$`
	durationPattern = `^(0|(` + decimalPattern + `h)?(` + decimalPattern + `m)?(` + decimalPattern + `s)?(` +
		decimalPattern + `ms)?)$`
)

// ParseCPU reads an amount of processor, exactly, in millicores: 2, 0.5 or 500m.
func ParseCPU(text string) (int64, error) { return parseCPU(text, terms.CPUMillicoresMax) }

func parseCPU(text string, most int64) (int64, error) {
	number, milli := strings.CutSuffix(text, "m")
	unit := int64(1000)
	if milli {
		unit = 1
	}
	if !isDecimal(number) || milli && strings.Contains(number, ".") {
		return 0, misunderstood(text, "", cpuWords)
	}
	value, err := exact(number, unit, most)
	switch {
	case errors.Is(err, errPart):
		return 0, fmt.Errorf("must be in whole thousandths of a core, is %s", quoted(text))
	case err != nil:
		return 0, fmt.Errorf("must be at most %s cores, is %s", FormatCPU(most), quoted(text))
	}
	return value, nil
}

// FormatCPU writes millicores as ParseCPU reads them.
func FormatCPU(millicores int64) string { return terms.CPU.Text(millicores) }

// parseDevices reads an amount of devices, exactly, in thousandths of one: 2 or 0.5.
func parseDevices(text string, most int64) (int64, error) {
	if !isDecimal(text) {
		return 0, misunderstood(text, "", devicesWords)
	}
	value, err := exact(text, int64(terms.WholeDevice), most)
	switch {
	case errors.Is(err, errPart):
		return 0, fmt.Errorf("must be in whole thousandths of a device, is %s", quoted(text))
	case err != nil:
		return 0, fmt.Errorf("must be at most %s devices, is %s", formatDevices(most), quoted(text))
	}
	return value, nil
}

// formatDevices writes thousandths of devices as parseDevices reads them.
func formatDevices(amount int64) string { return terms.GPU.Text(amount) }

// ParseBytes reads an amount of bytes, exactly: 256Mi, 1.5Gi, 10G, 4096B or 0.
func ParseBytes(text string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	suffix := text[len(number):]
	if !isDecimal(number) {
		return 0, misunderstood(text, "", bytesWords)
	}
	if suffix == "" && len(number) > quantityBytesMax {
		return 0, misunderstood(text, "", bytesWords)
	}
	if suffix == "" {
		return 0, fmt.Errorf("needs a unit: did you mean %sMi? Write %s", number, bytesWords)
	}
	for _, u := range byteUnits() {
		if suffix != u.suffix && suffix != u.suffix+"B" {
			continue
		}
		value, err := exact(number, u.bytes, terms.BytesMax)
		switch {
		case errors.Is(err, errPart):
			return 0, fmt.Errorf("must be a whole number of bytes, is %s", quoted(text))
		case err != nil:
			return 0, fmt.Errorf("must be at most %s, is %s", FormatBytes(terms.BytesMax), quoted(text))
		}
		return value, nil
	}
	return 0, misunderstood(text, likelyBytes(number, suffix), bytesWords)
}

// likelyBytes returns what somebody who wrote another unit probably meant, "" if that is not clear.
func likelyBytes(number, suffix string) string {
	for _, u := range byteUnits() {
		if len(number) <= quantityBytesMax && u.suffix != "" &&
			(strings.EqualFold(suffix, u.suffix) || strings.EqualFold(suffix, u.suffix+"B")) {
			return number + u.suffix
		}
	}
	return ""
}

// FormatBytes writes bytes as ParseBytes reads them, in the largest unit by 1024 that is exact.
func FormatBytes(bytes int64) string { return terms.Memory.Text(bytes) }

// durationUnits are the suffixes of durations, in the order in which they are written.
func durationUnits() []byteUnit {
	return []byteUnit{{"h", 3_600_000}, {"m", 60_000}, {"s", 1000}, {"ms", 1}}
}

// ParseDuration reads a duration, exactly, in milliseconds: 5s, 1m30s, 500ms or 0. It may be at most most.
func ParseDuration(text string, most int64) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	if isDecimal(text) && len(text) <= quantityBytesMax {
		return 0, fmt.Errorf("needs a unit: did you mean %ss? Write %s", text, durationWords)
	}
	total, rest := int64(0), text
	var failure error
	for _, u := range durationUnits() {
		end := strings.IndexFunc(rest, func(c rune) bool { return c != '.' && (c < '0' || c > '9') })
		if end <= 0 || !isDecimal(rest[:end]) {
			break
		}
		letters := strings.TrimLeft(rest[end:], "abcdefghijklmnopqrstuvwxyz")
		if rest[end:len(rest)-len(letters)] != u.suffix {
			continue
		}
		value, err := exact(rest[:end], u.bytes, most)
		switch {
		case errors.Is(err, errPart):
			failure = fmt.Errorf("must be in whole milliseconds, is %s", quoted(text))
		case err != nil || total+value > most:
			failure = fmt.Errorf("must be at most %s, is %s", terms.FormatDuration(most), quoted(text))
		}
		total, rest = min(total+value, most), letters
	}
	if rest != "" || text == "" {
		return 0, misunderstood(text, "", durationWords)
	}
	return total, failure
}

var (
	errPart  = errors.New("is not a whole number of units")
	errLarge = errors.New("is too large")
)

// exact returns number times unit, which must be whole and at most most.
func exact(number string, unit, most int64) (int64, error) {
	if len(number) > quantityBytesMax {
		return 0, errLarge
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, errPart
	}
	r.Mul(r, new(big.Rat).SetInt64(unit))
	switch {
	case r.Cmp(new(big.Rat).SetInt64(most)) > 0:
		return 0, errLarge
	case !r.IsInt():
		return 0, errPart
	}
	return r.Num().Int64(), nil
}

// isDecimal tells whether the text is digits, perhaps a point and more digits, without needless zeros before them.
func isDecimal(text string) bool {
	whole, fraction, point := strings.Cut(text, ".")
	if point && !isDigits(fraction) {
		return false
	}
	return isDigits(whole) && (whole == "0" || whole[0] != '0')
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

func misunderstood(text, meant, words string) error {
	if meant != "" {
		meant = fmt.Sprintf("did you mean %s? ", meant)
	}
	if strings.HasPrefix(text, "-") && isDecimal(strings.TrimRight(text[1:], "kKmMgGtTpPihsB")) {
		return fmt.Errorf("must not be negative, is %s", quoted(text))
	}
	return fmt.Errorf("%s is not understood: %swrite %s", quoted(text), meant, words)
}

// quoted returns the text in quotes, shortened to what a message can bear.
func quoted(text string) string {
	const charactersMax = 60
	if characters := []rune(text); len(characters) > charactersMax {
		return strconv.Quote(string(characters[:charactersMax])) + "..."
	}
	return strconv.Quote(text)
}
