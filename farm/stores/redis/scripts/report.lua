-- Replaces the picture of one epoch (promise 1).
-- ARGV: client id, link, epoch, number, now, how many arguments each of the parts below takes, and
-- those: windows, contexts and tabs as fields and values, places and identities, idle contexts as
-- scores and members.
local TOLD = {{'windows', 'HSET'}, {'contexts', 'HSET'}, {'tabs', 'HSET'}, {'places', 'SADD'},
              {'identities', 'SADD'}, {'idle', 'ZADD'}}
local id = ARGV[2]
local found = redis.call('HMGET', key('client', id), 'link', 'epoch', 'report')
if not found[1] or found[1] ~= ARGV[3] or found[2] ~= ARGV[4]
  or tonumber(ARGV[5]) <= tonumber(found[3]) then return {'stale'} end

local from = 7 + #TOLD
for n, told in ipairs(TOLD) do
  local name, to = key(told[1], id), from + ARGV[6 + n]
  redis.call('DEL', name)
  put_all(told[2], name, from, to - 1)
  from = to
end
redis.call('DEL', key('dirty', id))
redis.call('HSET', key('client', id), 'report', ARGV[5])
redis.call('HSET', key('seen'), id, ARGV[6])

local gone = {}
for _, text in ipairs(redis.call('HVALS', key('assignments', id))) do
  local context_id = cjson.decode(text).context_id
  local context = redis.call('HGET', key('contexts', id), context_id)
  if context then
    redis.call('ZREM', key('idle', id), idle(cjson.decode(context).place, context_id))
  else
    gone[#gone + 1] = text
    end_assignment(id, context_id)
  end
end
changed(id)
return {'ok', wake(), gone}
