-- Notes one step of a command, if it is in a state that the step may follow: farm/core/commands.py
-- `AFTER`, of which the caller names the part that matters. What is known already is never changed.
-- ARGV: namespace, command id, those states with a space around each, the fields to add, the
-- payload or nothing.
local records = key('commands', ARGV[2])
local text = redis.call('HGET', records, ARGV[3])
if not text then return {'no'} end
local one = cjson.decode(text)
if not string.find(ARGV[4], ' ' .. one.state .. ' ', 1, true) then return {'no'} end
for name, value in pairs(cjson.decode(ARGV[5])) do
  if name == 'state' or one[name] == nil then one[name] = value end
end
redis.call('HSET', records, ARGV[3], cjson.encode(one))
if ARGV[6] ~= '' then redis.call('HSET', key('command_payloads', ARGV[2]), ARGV[3], ARGV[6]) end
return {'ok'}
