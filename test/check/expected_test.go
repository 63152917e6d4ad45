package check

import "strings"

// expected is what must occur among the usual number of schedules, or they show less than they seem to.
func expected() []string {
	var out []string
	for _, kind := range []string{
		redisAway, allRedisAway, cutRedis, cutCaller, flushScripts, pauseWorker, killWorker, stopWorker, killServer, stopServer, slowHandler,
	} {
		out = append(out, "fault "+kind)
	}
	for verb := range strings.FieldsSeq("poll renew report describe results") {
		out = append(out, "fault "+loseReply+" "+verb)
	}
	for verb := range strings.FieldsSeq("commit renew report") {
		out = append(out, "fault "+sendTwice+" "+verb)
	}
	for script := range strings.FieldsSeq("claim settle commit stage renew sweep other") {
		out = append(out, "fault "+loseRedisReply+" "+script)
	}
	for script, words := range outcomes {
		for word := range strings.FieldsSeq(words) {
			out = append(out, "script "+script+" "+word)
		}
	}
	for verdict := range strings.FieldsSeq("recorded retrying released dropped stale") {
		out = append(out, "verdict "+verdict)
	}
	for status := range strings.FieldsSeq("completed failed cancelled") {
		out = append(out, "run "+status)
	}
	return append(out, "lapse", "hold 1", "hold 2", "hold 3")
}

// outcomes are the words of the scripts' replies that must be seen. The others need what no schedule has: a history that is
// full, a run that the Store or a Recorder works on too, a staging area that expires, a workflow that is not there.
var outcomes = map[string]string{
	"claim":       "ok again",
	"settle":      "ok closed live NOSCRIPT",
	"settle ok":   "running failed completed",
	"settle item": "d s",
	"commit":      "ok again exists",
	"stage":       "ok again",
	"cancel":      "ok closed",
	"renew":       "ok",
	"renew row":   "h l c",
	"deliver":     "ok",
	"sweep":       "ok NOSCRIPT",
}
