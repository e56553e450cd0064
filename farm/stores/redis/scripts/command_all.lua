-- Returns the records of a namespace's commands, without payloads. ARGV: namespace.
return {'ok', false, redis.call('HVALS', key('commands', ARGV[2]))}
