-- claim: hands due rows of some runs to the polls that wait, each run's rows in one claim per poll.
--
-- KEYS[1]    ready     zset    write
-- KEYS[2]    backlog   hash    write
-- KEYS[3]    claims    zset    write
-- KEYS[4]    leases    hash    read+write
-- KEYS[at+1] run       hash    read+write  of each pair (run, route)
-- KEYS[at+2] rows      hash    read+write
-- KEYS[at+3] due       zset    read+write
-- KEYS[at+4] route     zset    write
-- KEYS[at+5] inputs    hash    read
-- KEYS[at+6] resolved  bitmap  read
-- ARGV[1]   int     lease, ms
-- ARGV[2]   int     most chunks of inputs to return
-- ARGV[3]   int     most bytes of large inputs, and of the records of rows that were tried, to return
-- ARGV[4]   int     pairs
-- ARGV[5]   int     polls
-- ARGV[ap]   id      of a pair: the run's ID
-- ARGV[ap+1] string  its route
-- ARGV[ap+2] int     the route's number in the run
-- ARGV[ap+3] int     most rows to take of the pair
-- ARGV[aw]   string  of a poll: 24 random characters; with the pair's number they are the claim's nonce
-- ARGV[aw+1] int     most rows to hand to the poll
-- ARGV[aw+2] bytes   the worker
--
-- RETURNS
--   ok     {'ok', now, {route, score …}, {pair, next, chunks, claims, retried, large} …}  the routes that were looked at
--          with the instant to look there again or ''; for each pair that was looked at: next is the score of what is
--          due next or '', chunks {number, bytes …}, claims {poll, ordinals 'a-b,c-d' …}, retried {ordinal, record …},
--          large {ordinal, bytes …}
--   again  {'again'}  a nonce is in use: the same call was applied before and its reply was lost
local npairs, npolls = tonumber(ARGV[4]), tonumber(ARGV[5])
local poll, want, first = 1, {}, 5 + 4 * npairs
for w = 1, npolls do
  local aw = first + 1 + 3 * (w - 1)
  want[w] = tonumber(ARGV[aw+1])
  local nonces = {}
  for i = 1, npairs do nonces[i] = ARGV[aw] .. string.format('%02d', i) end
  local used = redis.call('HMGET', KEYS[4], unpack(nonces))
  for i = 1, npairs do
    if used[i] then return {'again'} end
  end
end
local chunks_left, large_left, taken_any = tonumber(ARGV[2]), tonumber(ARGV[3]), false
local steps_left = 1000 -- over resolved rows: what lies behind is for the next call

-- take collects up to need rows of a due set: their ordinals, the members that go, and what is left of a span
local function take(at, run, need)
  local k, holes = tonumber(run[2]), tonumber(run[3] or '0')
  local large, n = run[4], 0
  local got, gone, singles, rest, score, skipped, last = {}, {}, {}, nil, nil, 0, nil
  -- by rank, since Redis builds a reply by score in pieces of 16 KB; mostly the first member is all that is needed
  local due = redis.call('ZRANGE', KEYS[at+3], 0, 0, 'WITHSCORES')
  if due[1] and (string.sub(due[1], 9, 9) == 'r' or holes > 0 or string.sub(due[1], 10) - string.sub(due[1], 1, 8) < need - 1) then
    due = redis.call('ZRANGE', KEYS[at+3], 0, need - 1, 'WITHSCORES')
  end
  local function fits(o, record)
    local c = (o - o % k) / k
    if c ~= last then
      if chunks_left == 0 then return false end
      chunks_left, last = chunks_left - 1, c
    end
    if large or record then
      local size = large and redis.call('HSTRLEN', KEYS[at+5], 'b' .. string.format('%d', o)) or 0
      if record then size = size + redis.call('HSTRLEN', KEYS[at+2], string.format('%d', o)) end
      if size > large_left and taken_any then return false end
      large_left = large_left - size
    end
    taken_any = true
    return true
  end
  for i = 1, #due, 2 do
    if tonumber(due[i+1]) > now then break end
    local m = due[i]
    local a = tonumber(string.sub(m, 1, 8))
    if string.sub(m, 9, 9) == 'r' then
      if not fits(a, true) then break end
      n = n + 1
      got[n], singles[#singles+1], gone[#gone+1] = a, a, m
    else
      local b, o = tonumber(string.sub(m, 10)), a
      if holes == 0 and not large then
        -- the usual case, without a look at every row: as many as the chunks allow that may still be read
        local c = (a - a % k) / k
        local from = c == last and 1 or 0
        local upto = math.min(b, a + need - n - 1, (c + from + chunks_left) * k - 1)
        if upto >= a then
          last, chunks_left = (upto - upto % k) / k, chunks_left - ((upto - upto % k) / k - c + 1 - from)
          for x = a, upto do
            n = n + 1
            got[n] = x
          end
          o, taken_any = upto + 1, true
        end
      end
      while o <= b and n < need and (holes > 0 or large) do
        if holes > 0 and redis.call('GETBIT', KEYS[at+6], o) == 1 then
          -- a resolved row within the span: to the next byte with an open one, in one step
          if steps_left == 0 then break end
          local nxt = o + 1
          if nxt % 8 == 0 then
            nxt = math.max(nxt, redis.call('BITPOS', KEYS[at+6], 0, nxt / 8))
          end
          nxt = math.min(nxt, b + 1)
          skipped, steps_left = skipped + nxt - o, steps_left - 1
          o = nxt
        else
          if not fits(o) then break end
          n = n + 1
          got[n] = o
          o = o + 1
        end
      end
      if o > a then gone[#gone+1] = m end
      if o > a and o <= b then rest, score = string.format('%08df%08d', o, b), due[i+1] end
      if o <= b then break end
    end
    if n == need then break end
  end
  return got, gone, singles, rest, score, skipped
end

local reply, touched, routes, lease = {'ok', now, {}}, {}, {}, tonumber(ARGV[1])
-- WRITES
for i = 1, npairs do
  local ap, at = 6 + 4 * (i - 1), 4 + 6 * (i - 1)
  local need = 0
  for w = poll, npolls do need = need + want[w] end
  need = math.min(need, tonumber(ARGV[ap+3]), 1000)
  if need == 0 or chunks_left == 0 or steps_left == 0 then break end
  local run = redis.call('HMGET', KEYS[at+1], 'status', 'k', 'holes', 'large')
  local got, gone, singles, rest, score, skipped = {}, {}, {}, nil, nil, 0
  if run[1] == 'running' then got, gone, singles, rest, score, skipped = take(at, run, need) end
  local records = {}
  if #singles > 0 then
    local r = redis.call('HMGET', KEYS[at+2], unpack(singles))
    for j = 1, #singles do records['' .. singles[j]] = r[j] or nil end -- by text: miniredis fills tables up to a number
  end
  if #gone > 0 then
    redis.call('ZREM', KEYS[at+3], unpack(gone))
    if rest then redis.call('ZADD', KEYS[at+3], score, rest) end
  end
  if i == 1 and #gone == 0 then
    redis.call('ZREM', KEYS[3], '') -- takes nothing; a full Redis refuses a script whose first write adds
  end
  if skipped > 0 then redis.call('HINCRBY', KEYS[at+1], 'holes', -skipped) end
  local claims, set, j = {}, {}, 1
  while j <= #got do
    while want[poll] == 0 do poll = poll + 1 end
    local aw = first + 1 + 3 * (poll - 1)
    local nonce = ARGV[aw] .. string.format('%02d', i)
    local route = string.format('%02d', tonumber(ARGV[ap+2]))
    local upto, fresh = math.min(#got, j + want[poll] - 1), 'C00' .. route .. nonce
    local spans, a, delivered = {}, got[j], '0'
    for x = j, upto do
      local o, old = got[x], #singles > 0 and records['' .. got[x]]
      if old and string.sub(old, 6, 6) == 'u' then delivered = '1' end
      set[#set+1] = string.format('%d', o)
      set[#set+1] = old and 'C' .. string.sub(old, 2, 3) .. route .. nonce .. string.sub(old, 32) or fresh
      if x == upto or got[x+1] ~= o + 1 then
        spans[#spans+1] = a .. '-' .. o
        a = got[x+1]
      end
      if #set == 1000 then redis.call('HSET', KEYS[at+2], unpack(set)) set = {} end
    end
    local list = table.concat(spans, ',')
    redis.call('HSET', KEYS[4], nonce, delivered .. string.format('%09d%013d%s', lease, now, route) .. ARGV[aw+2] .. '\n' .. ARGV[ap] .. '\n' .. list,
      nonce .. ':n', upto - j + 1)
    redis.call('ZADD', KEYS[3], now + lease, nonce)
    claims[#claims+1], claims[#claims+2] = poll, list
    want[poll], j = want[poll] - (upto - j + 1), upto + 1
  end
  if #set > 0 then redis.call('HSET', KEYS[at+2], unpack(set)) end
  if #got > 0 then
    redis.call('HINCRBY', KEYS[at+1], 'p' .. ARGV[ap+2], -#got)
    count_pending(KEYS[2], ARGV[ap+1], -#got)
  end
  -- when the run is to be looked at again: at its next row, or behind the others if that is due
  local nxt = score or run[1] == 'running' and redis.call('ZRANGE', KEYS[at+3], 0, 0, 'WITHSCORES')[2] or ''
  if nxt == '' then
    redis.call('ZREM', KEYS[at+4], ARGV[ap])
  else
    local served = tonumber(nxt) > now and nxt or string.format('%.3f', clock[1] * 1000 + clock[2] / 1000)
    redis.call('ZADD', KEYS[at+4], served, ARGV[ap])
  end
  touched[KEYS[at+4]] = ARGV[ap+1]
  -- what the rows need besides: their chunks, each once; the records of those that have one; inputs of their own
  local chunks, retried, large, k, last = {}, {}, {}, tonumber(run[2]), nil
  if #got > 0 then
    local fields = {}
    for x = 1, #got do
      local c = (got[x] - got[x] % k) / k
      if c ~= last then fields[#fields+1], last = string.format('%d', c), c end
    end
    local values = redis.call('HMGET', KEYS[at+5], unpack(fields))
    for x = 1, #fields do chunks[2*x-1], chunks[2*x] = fields[x], values[x] or '' end
    for x = 1, #singles do retried[2*x-1], retried[2*x] = singles[x], records['' .. singles[x]] or '' end
    if run[4] then
      for x = 1, #got do
        local v = redis.call('HGET', KEYS[at+5], 'b' .. string.format('%d', got[x]))
        if v then large[#large+1], large[#large+2] = got[x], v end
      end
    end
  end
  reply[#reply+1] = {i, nxt, chunks, claims, retried, large}
end
for set, route in pairs(touched) do
  routes[#routes+1] = route
  routes[#routes+1] = refresh(KEYS[1], set, route)
end
reply[3] = routes
return reply
