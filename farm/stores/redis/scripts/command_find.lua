-- Returns the record of a command and its payload; else whether it has expired, and since when all
-- is known. ARGV: namespace, command id.
local since = redis.call('HGET', key('commands_forgotten'), ARGV[2])
  or redis.call('GET', key('commands_since'))
local text = redis.call('HGET', key('commands', ARGV[2]), ARGV[3])
if text then
  local payload = redis.call('HGET', key('command_payloads', ARGV[2]), ARGV[3])
  return {'ok', false, since, text, payload}
end
local expired = redis.call('ZSCORE', key('command_expired', ARGV[2]), ARGV[3])
return {expired and 'expired' or 'no', false, since}
