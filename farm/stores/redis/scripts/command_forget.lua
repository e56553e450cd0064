-- Lets go of all that is known of a namespace's commands. ARGV: namespace, now.
local namespace = ARGV[2]
for _, part in ipairs({'commands', 'command_payloads', 'command_order', 'command_expired'}) do
  redis.call('DEL', key(part, namespace))
end
redis.call('HSET', key('commands_forgotten'), namespace, ARGV[3])
return {'ok'}
