-- Gives a reserved window, tab or flow back; does nothing in another epoch.
-- ARGV: client id, epoch, 'windows', 'flows' or 'tab:<window id>', identity if it has one.
local id = ARGV[2]
if redis.call('HGET', key('client', id), 'epoch') ~= ARGV[3] then return {'no'} end
give_back(id, ARGV[4], ARGV[5])
changed(id)
return {'ok', wake()}
