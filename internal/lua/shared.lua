-- Put in front of every script: the clock, the two ways in which a run moves on its route, and the route's backlog.
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
