-- Gives a reserved window or tab back; does nothing in another epoch.
-- ARGV: client id, epoch, 'windows' or 'tab:<window id>', identity if it has one.
local id = ARGV[2]
if redis.call('HGET', key('client', id), 'epoch') ~= ARGV[3] then return {'no'} end
add(key('opening', id), ARGV[4], -1)
if ARGV[5] then add(key('opening_identities', id), ARGV[5], -1) end
touch(id)
return {'ok', wake()}
