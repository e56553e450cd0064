-- Puts back an assignment the agent still runs, into the client's present epoch.
-- ARGV: the assignment, the record of its context if it has not been reported yet.
local one = cjson.decode(ARGV[2])
local id = one.client_id
one.epoch = redis.call('HGET', key('client', id), 'epoch')
if not one.epoch or redis.call('HEXISTS', key('assignments', id), one.context_id) == 1 then
  return {'no'}
end
redis.call('HSETNX', key('contexts', id), one.context_id, ARGV[3])
put_assignment(one)
raise_token(id, one.token)
local place = cjson.decode(redis.call('HGET', key('contexts', id), one.context_id)).place
redis.call('ZREM', key('idle', id), idle(place, one.context_id))
changed(id)
return {'ok', wake()}
