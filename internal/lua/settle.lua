-- settle: records what became of rows of one run: outcomes that workers report, leases that lapsed, releases, cancels of
-- single rows, and what is written from outside.
--
-- KEYS[1]    run        hash    read+write
-- KEYS[2]    wf         hash    read+write  head, token
-- KEYS[3]    history    stream  append
-- KEYS[4]    rows       hash    read+write
-- KEYS[5]    resolved   bitmap  read+write
-- KEYS[6]    failed     bitmap  write
-- KEYS[7]    cancelled  bitmap  read+write
-- KEYS[8]    rest       bitmap  read
-- KEYS[9]    muted      bitmap  read+write
-- KEYS[10]   attempts   hash    read+write
-- KEYS[11]   claims     zset    write
-- KEYS[12]   leases     hash    read+write
-- KEYS[13]   ready      zset    write
-- KEYS[14]   backlog    hash    write
-- KEYS[15]   runs       zset    write       a run that closes is listed as what it is now
-- KEYS[16+2*r] due      zset    read+write  of route r
-- KEYS[17+2*r] route    zset    read+write  of route r
-- ARGV[1]  id      the run's ID
-- ARGV[2]  string  a nonce, if this is its lapse: nothing happens unless its deadline has passed; else ''. The claim goes
--                  with its last row, or if no row here was its own: a large claim may lapse in several calls
-- ARGV[3]  string  write token that must be in force, or ''
-- ARGV[4]  int     head that is expected, or ''
-- ARGV[5]  bytes   events that close the run as completed
-- ARGV[6]  bytes   … as failed
-- ARGV[7]  bytes   … as cancelled
-- ARGV[8]  string  channel of wake-ups
-- ARGV[9]  string  shard
-- ARGV[10] int     the most head from which the events here, with those that close the run, can still be counted
-- ARGV[11] int     routes of the run, as the caller knows them
-- ARGV[12] int     groups
-- ARGV[r+13] string route r
-- ARGV[p]   char    of a group, its verb: c completed, f failed, x cancelled, q put back in the queue
-- ARGV[p+1] string  the nonce that must hold the rows, or '' for whoever does
-- ARGV[p+2] int     attempt, from 1
-- ARGV[p+3] int     number of the rows' route
-- ARGV[p+4] bytes   the events' preamble: who ran the attempt
-- ARGV[p+5] int     how many items follow, up to 1,000
-- ARGV[i]   int     of an item: the ordinal
-- ARGV[i+1] bytes   its event (of q: two), '' to write none
-- ARGV[i+2] int     only q: due at this instant, ms; negative or 0: so long from now
-- ARGV[i+3] int     only q: tries spent, or '' for as many as before
-- ARGV[i+4] bytes   only q: the error of the attempt, or '' to keep the one before
-- ARGV[i+5] string  only q: the span that a fresh row may be in, or ''
--
-- RETURNS
--   ok        {'ok', status, head, {group, item, code, attempt} …}  only the items that were not accepted: d dropped (and the
--             attempt that was recorded, 0 if it was cancelled), s stale, n no such ordinal, v the row is in no such span;
--             an ordinal that a group names twice is stale the second time
--   absent    {'absent'}            no such run
--   closed    {'closed', status}    the run is closed; a lapse has removed its claim
--   routes    {'routes', nroutes}   the caller's table of routes is old
--   fenced    {'fenced'}            the token is not the one in force
--   conflict  {'conflict', head}    the head is another
--   live      {'live', deadline}    the claim has not lapsed, or is gone (deadline 0)
--   full      {'full', head}        the history can count no further
local run = redis.call('HMGET', KEYS[1], 'status', 'n', 'completed', 'failed', 'cancelled', 'nroutes', 'auto', 'muted')
local wf = redis.call('HMGET', KEYS[2], 'head', 'token')
local nonce = ARGV[2]
if nonce ~= '' then
  local deadline = tonumber(redis.call('ZSCORE', KEYS[11], nonce) or '0')
  if deadline == 0 or deadline > now then return {'live', deadline} end
end
local function forget(claim)
  redis.call('ZREM', KEYS[11], claim)
  redis.call('HDEL', KEYS[12], claim, claim .. ':n')
end
if run[1] ~= 'running' then
  if nonce ~= '' then forget(nonce) end
  if run[1] then return {'closed', run[1]} end
  return {'absent'}
end
local head, n, routes = tonumber(wf[1] or '0'), tonumber(run[2]), tonumber(ARGV[11])
if ARGV[3] ~= '' and ARGV[3] ~= wf[2] then return {'fenced'} end
if ARGV[4] ~= '' and tonumber(ARGV[4]) ~= head then return {'conflict', head} end
if tonumber(run[6]) ~= routes then return {'routes', tonumber(run[6])} end
if head > tonumber(ARGV[10]) then return {'full', head} end

local reply, blobs, events = {'ok', '', 0}, {}, 0
local counts = {c = tonumber(run[3] or '0'), f = tonumber(run[4] or '0'), x = tonumber(run[5] or '0')}
local before = counts.c + counts.f + counts.x
local gone, set, left, heard, pending, due, holes = {}, {}, {}, {}, {}, {}, 0
-- WRITES
redis.call('ZREM', KEYS[11], '') -- takes nothing; a full Redis refuses a script whose first write adds

-- leave takes an unresolved row from wherever it is; false if it is fresh and not in the span that is named
local function leave(o, rec, r, span)
  if rec then
    r = tonumber(string.sub(rec, 4, 5))
    if string.sub(rec, 1, 1) == 'C' then
      local claim = string.sub(rec, 6, 31)
      left[claim] = (left[claim] or 0) + 1
    else
      redis.call('ZREM', KEYS[16+2*r], string.format('%08dr', o))
      pending[r] = (pending[r] or 0) - 1
    end
    return r
  end
  if span then
    local score = redis.call('ZSCORE', KEYS[16+2*r], span)
    local a, b = tonumber(string.sub(span, 1, 8)), tonumber(string.sub(span, 10))
    if not score or string.sub(span, 9, 9) ~= 'f' or o < a or o > b then return nil end
    redis.call('ZREM', KEYS[16+2*r], span)
    if a < o then redis.call('ZADD', KEYS[16+2*r], score, string.format('%08df%08d', a, o - 1)) end
    if o < b then redis.call('ZADD', KEYS[16+2*r], score, string.format('%08df%08d', o + 1, b)) end
  else
    holes = holes + 1
  end
  pending[r] = (pending[r] or 0) - 1
  return r
end

-- mark sets the bits of ordinals that ascend; those that lie close together in one piece
local function mark(key, list)
  local i = 1
  while i <= #list do
    local first = (list[i] - list[i] % 8) / 8
    local j, last = i, first
    while list[j+1] do
      local byte = (list[j+1] - list[j+1] % 8) / 8
      if byte < last or byte - last > 8 or byte - first > 255 then break end
      j, last = j + 1, byte
    end
    if j - i < 3 then
      for x = i, j do redis.call('SETBIT', key, list[x], 1) end
    else
      local bytes = {string.byte(redis.call('GETRANGE', key, first, last), 1, -1)}
      for x = #bytes + 1, last - first + 1 do bytes[x] = 0 end
      for x = i, j do
        local at, bit = (list[x] - list[x] % 8) / 8 - first + 1, 2 ^ (7 - list[x] % 8)
        if bytes[at] % (2 * bit) < bit then bytes[at] = bytes[at] + bit end
      end
      redis.call('SETRANGE', key, first, string.char(unpack(bytes)))
    end
    i = j + 1
  end
end

local function attempt_of(o)
  if redis.call('GETBIT', KEYS[7], o) == 1 or redis.call('GETBIT', KEYS[8], o) == 1 then return 0 end
  return tonumber(redis.call('HGET', KEYS[10], o) or '1')
end

-- requeue puts a row back; its items are ordinal, event, due, tries, error, span
local function requeue(i, o, rec, holder, route)
  local r = leave(o, rec, route, ARGV[i+5])
  if not r then return false end
  local at = tonumber(ARGV[i+2])
  if at <= 0 then at = now - at end
  local tries = ARGV[i+3] ~= '' and string.format('%02d', tonumber(ARGV[i+3])) or rec and string.sub(rec, 2, 3) or '00'
  local err = ARGV[i+4] ~= '' and ARGV[i+4] or rec and string.sub(rec, 32) or ''
  set[#set+1] = ARGV[i]
  -- a claim that lapsed undelivered cost no attempt; should the next one lapse, it does: its rows may be to blame
  local mark = nonce ~= '' and ARGV[i+1] == '' and 'u' or '-'
  set[#set+1] = 'P' .. tries .. string.format('%02d', r) .. mark .. string.rep('-', 25) .. err
  redis.call('ZADD', KEYS[16+2*r], at, string.format('%08dr', o))
  pending[r] = (pending[r] or 0) + 1
  due[r] = math.min(due[r] or at, at)
  return true
end

local p = 13 + routes
for g = 1, tonumber(ARGV[12]) do
  local verb, holder, attempt, route, count = ARGV[p], ARGV[p+1], ARGV[p+2], tonumber(ARGV[p+3]), tonumber(ARGV[p+5])
  local width, preamble = verb == 'q' and 6 or 2, false
  local ids, seen, ended, mute = {}, {}, {}, {}
  local untouched = 'C' .. string.format('%02d%02d', tonumber(attempt) - 1, route) .. holder -- most rows' record
  for j = 1, count do
    local i = p + 6 + width * (j - 1)
    ids[j] = ARGV[i]
  end
  local records = count > 0 and redis.call('HMGET', KEYS[4], unpack(ids)) or {}
  for j = 1, count do
    local i = p + 6 + width * (j - 1)
    local o, rec, event, code, recorded = tonumber(ARGV[i]), records[j], ARGV[i+1], nil, 0
    local held = rec and holder ~= '' and
      (rec == untouched or string.sub(rec, 6, 31) == holder and string.sub(rec, 1, 1) == 'C')
    if held then heard[holder] = true end
    local resolved = not held and (not rec or verb ~= 'q') and redis.call('GETBIT', KEYS[5], o) == 1
    if o >= n then
      code = 'n'
    elseif seen[ARGV[i]] then
      code = 's'
    elseif resolved then
      -- resolved without an event, by the outbox alone: history still wants its terminal
      if event ~= '' and verb ~= 'q' and run[8] and redis.call('SETBIT', KEYS[9], o, 0) == 1 then
        if attempt ~= '1' then redis.call('HSET', KEYS[10], o, attempt) else redis.call('HDEL', KEYS[10], o) end
      else
        code, recorded = 'd', attempt_of(o)
      end
    elseif not held and holder ~= '' and
      (verb ~= 'c' or tonumber(attempt) > 1 + (rec and tonumber(string.sub(rec, 2, 3)) or 0)) then
      code = 's' -- also a late success of an attempt that history has not started: Redis was taken back to before it
    elseif verb == 'q' then
      if not requeue(i, o, rec, holder, route) then code = 'v' end
    else
      if held then left[holder] = (left[holder] or 0) + 1 else leave(o, rec, route) end
      if rec then gone[#gone+1] = ids[j] end
      ended[#ended+1] = o
      if event == '' then mute[#mute+1] = o end
      if attempt ~= '1' then redis.call('HSET', KEYS[10], o, attempt) end
      counts[verb] = counts[verb] + 1
    end
    seen[ARGV[i]] = true -- by text: miniredis fills tables up to a number
    if code then
      reply[#reply+1] = {g, j, code, recorded}
    elseif event ~= '' then
      if not preamble then blobs[#blobs+1], preamble = ARGV[p+4], true end
      blobs[#blobs+1], events = event, events + (verb == 'q' and 2 or 1)
    end
  end
  mark(KEYS[5], ended)
  if verb == 'f' then mark(KEYS[6], ended) elseif verb == 'x' then mark(KEYS[7], ended) end
  if #mute > 0 then
    mark(KEYS[9], mute)
    run[8] = '1'
    redis.call('HSET', KEYS[1], 'muted', 1)
  end
  if #gone > 0 then redis.call('HDEL', KEYS[4], unpack(gone)) end
  if #set > 0 then redis.call('HSET', KEYS[4], unpack(set)) end
  gone, set = {}, {}
  p = p + 6 + width * count
end

-- what follows from the counts: verdict and close are in the same step
local done, status = counts.c + counts.f + counts.x, 'running'
if done > before then
  redis.call('HSET', KEYS[1], 'completed', counts.c, 'failed', counts.f, 'cancelled', counts.x)
  if done == n and run[7] == '1' then
    status = counts.x == n and 'cancelled' or counts.c == n and 'completed' or 'failed'
    blobs[#blobs+1] = status == 'completed' and ARGV[5] or status == 'failed' and ARGV[6] or ARGV[7]
    events = events + 2
    redis.call('HSET', KEYS[1], 'status', status, 'closed', now)
  end
end
if events > 0 then
  redis.call('XADD', KEYS[3], string.format('%.0f-%.0f', head + 1, events), 'e', table.concat(blobs), 't', now)
  head = head + events
  redis.call('HSET', KEYS[2], 'head', string.format('%.0f', head))
end
if holes > 0 then redis.call('HINCRBY', KEYS[1], 'holes', holes) end
for claim, x in pairs(left) do
  if redis.call('HINCRBY', KEYS[12], claim .. ':n', -x) <= 0 then
    forget(claim)
  elseif heard[claim] and claim ~= nonce then
    -- who reports has the rows: from now on a lapse costs an attempt
    local lease = redis.call('HGET', KEYS[12], claim)
    if lease and string.sub(lease, 1, 1) == '0' then redis.call('HSET', KEYS[12], claim, '1' .. string.sub(lease, 2)) end
  end
end
if nonce ~= '' and not left[nonce] then forget(nonce) end
for r, x in pairs(pending) do
  if x ~= 0 then
    redis.call('HINCRBY', KEYS[1], 'p' .. r, x)
    count_pending(KEYS[14], ARGV[r+13], x)
  end
end
local wake = {}
for r, score in pairs(due) do
  if arrive(KEYS[13], KEYS[17+2*r], ARGV[r+13], ARGV[1], score) then
    wake[#wake+1] = 'r ' .. ARGV[9] .. ' ' .. score .. ' ' .. ARGV[r+13]
  end
end
if status ~= 'running' then
  local place = listed(redis.call('HGET', KEYS[1], 'started'), ARGV[1])
  redis.call('ZREM', KEYS[15], 'r' .. place)
  redis.call('ZADD', KEYS[15], 0, (status == 'completed' and 'c' or status == 'failed' and 'f' or 'x') .. place)
  redis.call('UNLINK', KEYS[4])
  redis.call('HSET', KEYS[1], 'holes', 0)
  for r = 0, routes - 1 do
    redis.call('UNLINK', KEYS[16+2*r])
    redis.call('ZREM', KEYS[17+2*r], ARGV[1])
    refresh(KEYS[13], KEYS[17+2*r], ARGV[r+13])
  end
  wake[#wake+1] = 'c ' .. ARGV[9] .. ' ' .. ARGV[1]
end
for i = 1, #wake do redis.pcall('PUBLISH', ARGV[8], wake[i]) end
reply[2], reply[3] = status, head
return reply
