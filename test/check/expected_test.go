package check

import "strings"

// expected is what must occur among n schedules, or they show less than they seem to.
func expected(n uint64) []string {
	var out []string
	add := func(prefix, words string) {
		for word := range strings.FieldsSeq(words) {
			out = append(out, prefix+" "+word)
		}
	}
	for _, kind := range []string{
		redisAway, allRedisAway, cutRedis, cutCaller, flushScripts, pauseWorker, killWorker, stopWorker, killServer, stopServer, slowHandler,
	} {
		out = append(out, "fault "+kind)
	}
	add("fault "+loseReply, "poll renew report")
	add("fault "+sendTwice, "report")
	add("fault "+loseRedisReply, "claim settle")
	add("script claim", "ok again")
	add("script settle", "ok closed")
	add("script settle ok", "running failed completed")
	add("script settle item", "d s")
	add("script commit", "ok exists")
	add("script renew row", "h l c")
	add("script sweep", "ok NOSCRIPT")
	for _, script := range []string{"stage", "cancel", "renew", "deliver"} {
		add("script "+script, "ok")
	}
	add("verdict", "recorded retrying dropped stale")
	add("run", "completed failed cancelled")
	out = append(out, "lapse")
	if n < enough {
		return out
	}
	// The words that are missing here need what no schedule has: a history that is full, a run that a Store or a Recorder works on
	// too, a staging area that expires, a workflow that is not there.
	add("fault "+loseReply, "begin stage commit describe results cancel history list")
	add("fault "+loseRequest, "begin stage commit poll renew report describe results cancel")
	add("fault "+sendTwice, "begin stage commit renew cancel")
	add("fault "+loseRedisReply, "commit stage renew deliver sweep cancel other")
	add("script settle", "live NOSCRIPT")
	add("script commit", "again NOSCRIPT")
	add("script stage", "again committed NOSCRIPT")
	add("script cancel", "closed")
	add("verdict", "released")
	return out
}
