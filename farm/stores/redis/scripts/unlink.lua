-- Notes that an agent's current link closed.
-- ARGV: client id, link.
if not unlink(ARGV[2], ARGV[3]) then return {'no'} end
return {'ok', wake()}
