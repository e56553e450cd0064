-- Puts a letter into a coordinator's box, if that is there; else into those of all others.
-- ARGV: to whom, or nothing; the letter; about how many a box holds; from whom.
local function post(id)
  redis.call('XADD', key('mail', id), 'MAXLEN', '~', ARGV[4], '*', 'letter', ARGV[3])
end

if ARGV[2] ~= '' then
  if not is_there(ARGV[2]) then return {'no'} end
  post(ARGV[2])
  return {'ok'}
end
for _, id in ipairs(redis.call('HKEYS', key('coordinators'))) do
  if id ~= ARGV[5] and is_there(id) then post(id) end
end
return {'ok'}
