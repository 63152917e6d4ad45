-- Put in front of every script: the clock, the two ways in which a run moves on its route, the route's backlog, and the
-- place of a run in the list of its namespace's runs.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- arrive: run id is to be looked at on a route from score on. True if the route's own instant came forward.
local function arrive(ready, set, route, id, score)
  local before = redis.call('ZSCORE', ready, route)
  redis.call('ZADD', set, 'LT', score, id)
  redis.call('ZADD', ready, 'LT', score, route)
  return not before or tonumber(before) > score
end

-- refresh: a run left the route or was served: the route's instant is that of its first run. It is returned, '' if no
-- run waits there.
local function refresh(ready, set, route)
  local first = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  if first[1] then redis.call('ZADD', ready, first[2], route) else redis.call('ZREM', ready, route) end
  return first[2] or ''
end

-- count_pending: a route has more pending rows, or fewer. A route without any has no field, or the hash would grow for ever.
local function count_pending(backlog, route, by)
  if redis.call('HINCRBY', backlog, route, by) == 0 then redis.call('HDEL', backlog, route) end
end

-- listed: a run's place in the list of runs: when it started, in fifteen digits, and its ID. In front of it stands a letter:
-- a of all, r of running, c of completed, f of failed, x of cancelled runs. All scores are 0, so that the members are in order.
local function listed(started, id) return string.format('%015d', tonumber(started)) .. id end
