-- Counts turns, from 0.
-- ARGV: namespace.
return {'ok', false, redis.call('HINCRBY', key('turns'), ARGV[2], 1) - 1}
