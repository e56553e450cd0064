-- Tells something: each event has the number of the one before, by which readers see what they lack.
-- ARGV: about how many are held, event.
local last = redis.call('GET', key('events_last')) or '0'
local seq = whole(later(last))
redis.call('SET', key('events_last'), seq)
redis.call('XADD', key('events'), 'MAXLEN', '~', ARGV[2], seq .. '-0', 'before', last, 'event', ARGV[3])
return {'ok'}
