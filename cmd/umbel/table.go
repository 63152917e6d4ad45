package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/umbelhq/umbel"
)

// maxCell bounds what a table shows of a payload or a message, in runes; JSON has all of it.
const maxCell = 100

// columnWidths are wide enough for most values; what is wider pushes the rest of its row to the right. Rows are
// printed as they come, so no column can be as wide as its widest value.
var columnWidths = map[string]int{
	"WORKFLOW": 32, "RUN": 26, "STATUS": 9, "SCHEDULED": 9, "PENDING": 8, "CLAIMED": 8, "COMPLETED": 9, "FAILED": 8,
	"CANCELLED": 9, "STARTED": 20, "ORDINAL": 8, "ATTEMPT": 7, "KEY": 12, "SEQ": 8, "AT": 24, "TYPE": 21,
}

// row writes the cells of a row, which must be safe for a terminal already or go through [safeText].
func (p *printer) row(cells []string) {
	if p.widths == nil {
		for _, title := range cells {
			p.widths = append(p.widths, max(columnWidths[title], utf8.RuneCountInString(title)))
		}
	}
	for i, cell := range cells {
		_, _ = p.w.WriteString(cell) // Flush returns its error
		if i < len(cells)-1 {
			pad := p.widths[i] - utf8.RuneCountInString(cell)
			_, _ = p.w.WriteString(strings.Repeat(" ", max(pad, 0)+2))
		}
	}
	_ = p.w.WriteByte('\n')
}

// safeText makes s harmless on a terminal: control characters and what is no UTF-8 are written as escapes, lines
// stay lines.
func safeText(s string) string {
	if !strings.ContainsFunc(s, unsafeRune) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unsafeRune(r) && r != '\n':
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// unsafeRune is what moves the cursor, hides, or turns the direction of what follows.
func unsafeRune(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// cell is text of users in one line of a table, shortened.
func cell(s string) string {
	s = strings.ReplaceAll(safeText(s), "\n", `\n`)
	for i := range s {
		if i >= maxCell {
			return s[:i] + "…"
		}
	}
	return s
}

func payloadCell(p umbel.Payload) string {
	const most = 4 * maxCell // bytes are enough for that many runes
	data := p.Data
	if len(data) > most {
		data = data[:most]
	}
	if c := cell(string(data)); c != "" {
		return c
	}
	return `""`
}

func failureCell(f *umbel.Failure) string {
	if f.Type == f.Message {
		return cell(f.Type)
	}
	return cell(f.Type + ": " + f.Message)
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05") //nolint:gosmopolitan // for the person at this terminal
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// many is n things.
func many(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return decimal(n) + " " + thing + "s"
}

// dash stands for what is not there.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return cell(s)
}
